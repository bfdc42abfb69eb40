// The copies of kv.c, tested with GoogleTest (Debian: libgtest-dev):
//
//   aclshim test -- ./test_kv_gtest
//
// ASSERT_* returns from the test, so a scope is an object that ends with it.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "aclshim.h"
#include "kv.h"

namespace {

constexpr size_t kBlocks = 8, kSize = 4096;
const std::vector<size_t> kSome = {1, 2, 5};

// A scope of this thread. What it expected and did not get is a failure of the test where it ends.
class Scope {
public:
    explicit Scope(const char *name) : id_(aclshim_scope_begin(name, ACLSHIM_THIS_THREAD)) { EXPECT_GE(id_, 0); }
    ~Scope() { EXPECT_EQ(aclshim_scope_end(id_), 0) << "standard error says what the scope expected"; }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    operator aclshim_scope() const { return id_; }

private:
    aclshim_scope id_;
};

class Kv : public testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_EQ(kv_open(&kv, kBlocks, kSize), ACL_SUCCESS);
        for (size_t at = 0; at < kBlocks * kSize; at++)
            kv.home[at] = static_cast<uint8_t>(at / kSize * 97 + at % kSize * 31);
        aclshim_name_buffer(kv.device, kBlocks * kSize, "cache");
        aclshim_name_buffer(kv.home, kBlocks * kSize, "home");
        aclshim_name_stream(kv.stream, "kv");
    }
    void TearDown() override { ASSERT_EQ(kv_close(&kv), ACL_SUCCESS); }

    aclError Upload() { return kv_upload(&kv, kSome.data(), kSome.size()); }
    aclError Offload() { return kv_offload(&kv, kSome.data(), kSome.size()); }

    struct kv kv;
};

TEST_F(Kv, AnUploadIsOneCopyABlock)
{
    Scope scope("upload");
    EXPECT_EQ(aclshim_expect_calls(scope, nullptr, 3, 3), 0); // so many, and nothing else
    EXPECT_EQ(aclshim_expect_calls(scope, "aclrtMemcpyAsync direction=h2d size=4096 stream=kv", 3, 3), 0);
    EXPECT_EQ(aclshim_expect_clean(scope, ACLSHIM_PORTABILITY), 0);
    ASSERT_EQ(Upload(), ACL_SUCCESS);
}

TEST_F(Kv, ARoundTripMakesTheCopiesOfTheGoldenFile)
{
    void *headers = nullptr;
    ASSERT_EQ(aclrtMallocHost(&headers, kBlocks * KV_HEADER), ACL_SUCCESS);
    aclshim_name_buffer(headers, kBlocks * KV_HEADER, "headers");
    {
        Scope scope("round trip");
        EXPECT_EQ(aclshim_expect_golden(scope, "golden/round_trip.txt"), 0);
        ASSERT_EQ(Upload(), ACL_SUCCESS);
        ASSERT_EQ(kv_headers(&kv, static_cast<uint8_t *>(headers)), ACL_SUCCESS);
        ASSERT_EQ(kv_wait(&kv), ACL_SUCCESS);
        std::memset(kv.home, 0, kBlocks * kSize);
        ASSERT_EQ(Offload(), ACL_SUCCESS);
        ASSERT_EQ(kv_wait(&kv), ACL_SUCCESS);
    }
    EXPECT_EQ(kv.home[2 * kSize + 5], static_cast<uint8_t>(2 * 97 + 5 * 31));
    EXPECT_EQ(static_cast<uint8_t *>(headers)[5 * KV_HEADER], static_cast<uint8_t>(5 * 97));
    EXPECT_EQ(aclrtFreeHost(headers), ACL_SUCCESS);
}

TEST_F(Kv, WithoutBatchesAnOffloadIsOneCopyABlock)
{
    if (!aclshim_active())
        GTEST_SKIP() << "a batch that fails needs the shim";
    Scope scope("no batches");
    ASSERT_EQ(aclshim_inject(scope, "aclrtMemcpyBatch* return=207000"), 1);
    EXPECT_EQ(aclshim_expect_calls(scope, "aclrtMemcpyBatchAsync", 1, 1), 0); // asked once, not again
    EXPECT_EQ(aclshim_expect_calls(scope, "aclrtMemcpyAsync direction=d2h size=4096", 6, 6), 0);
    EXPECT_EQ(Offload(), ACL_SUCCESS);
    EXPECT_EQ(Offload(), ACL_SUCCESS);
    EXPECT_EQ(aclshim_injected(scope), 1);
}

TEST_F(Kv, ACopyThatFailsIsReportedAndEndsTheUpload)
{
    if (!aclshim_active())
        GTEST_SKIP() << "a copy that fails needs the shim";
    Scope scope("failing copy");
    ASSERT_EQ(aclshim_inject(scope, "aclrtMemcpyAsync nth=2 return=ACL_ERROR_RT_MEMORY_ALLOCATION"), 1);
    EXPECT_EQ(Upload(), ACL_ERROR_RT_MEMORY_ALLOCATION);

    struct aclshim_call calls[3];
    ASSERT_EQ(aclshim_calls(scope, nullptr, calls, 3), 2);
    EXPECT_EQ(calls[0].code, ACL_SUCCESS);
    EXPECT_EQ(calls[1].code, ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_TRUE(calls[1].flags & ACLSHIM_INJECTED);
    EXPECT_EQ(calls[1].dst, kv.device + kSome[1] * kSize);
    EXPECT_EQ(kv.table[1], 1);
    EXPECT_EQ(kv.table[2], 0);
}

// The device is open before the first test and closed after the last.
class Device : public testing::Environment {
    void SetUp() override
    {
        ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
        ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    }
    void TearDown() override
    {
        ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
        ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
    }
};

} // namespace

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    testing::AddGlobalTestEnvironment(new Device);
    return RUN_ALL_TESTS();
}
