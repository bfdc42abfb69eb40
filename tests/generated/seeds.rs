//! The sentences of the vendor's five original pages (CANN 8.x) that demand something, and the rules made from them.

/// One of the pages.
pub struct Page {
    /// What it describes, and in which language.
    pub title: &'static str,
    /// Its sentences, in order.
    pub sentences: &'static [Sentence],
}

/// One sentence of a page.
pub struct Sentence {
    /// As the page has it, shortened.
    pub text: &'static str,
    /// What became of it.
    pub coverage: Coverage,
}

/// What became of a sentence.
pub enum Coverage {
    /// These rules, by id.
    Rules(&'static [&'static str]),
    /// It demands nothing that a call could break: why.
    NoRestriction(&'static str),
}

use Coverage::{NoRestriction, Rules};

const fn rules(text: &'static str, ids: &'static [&'static str]) -> Sentence {
    Sentence { text, coverage: Rules(ids) }
}

const fn plain(text: &'static str, reason: &'static str) -> Sentence {
    Sentence { text, coverage: NoRestriction(reason) }
}

/// What waiting for a copy is about.
const AFTERWARDS: &str =
    "about what the program does after the call: whether it waits is seen over many calls, not in one";

/// Every page.
pub static PAGES: &[Page] = &[
    Page {
        title: "acl.rt.memcpy_async_with_condition (aclrtMemcpyAsyncWithCondition), English",
        sentences: &[
            plain(
                "Applicability: Atlas A3, Atlas A2, Atlas training, Atlas inference and Atlas 200I/500 A2 products",
                "every product of that release has it",
            ),
            rules(
                "If the input memory is not allocated by pyacl APIs, this API returns after the memory copy is complete.",
                &["ASYNC-PAGEABLE"],
            ),
            plain(
                "A successful call means the task is successfully delivered, not yet executed. To ensure the copy is complete, call a synchronization API.",
                AFTERWARDS,
            ),
            rules("destMax: memory size in bytes in the destination address", &["DEST-MAX"]),
            rules("kind: 0 to 4", &["KIND-RANGE", "KIND-FUNCTION"]),
            plain(
                "4: ACL_MEMCPY_DEFAULT. The system determines the copy direction based on the source and destination memory addresses.",
                "explains a kind",
            ),
            rules(
                "The source address and destination address passed to this call must be 64-byte aligned.",
                &["ALIGN-64"],
            ),
            rules(
                "Atlas inference products, Ascend EP: asynchronous memory copy within the host is not supported. If kind is ACL_MEMCPY_HOST_TO_HOST, ACL_ERROR_RT_FEATURE_NOT_SUPPORT is returned.",
                &["ASYNC-HOST-TO-HOST"],
            ),
            rules("Atlas 200I/500 A2 inference products, Ascend EP: the same.", &["ASYNC-HOST-TO-HOST"]),
            rules(
                "Atlas 200I/500 A2 inference products, Ascend RC: HOST_TO_DEVICE, DEVICE_TO_HOST and HOST_TO_HOST are carried out as DEVICE_TO_DEVICE.",
                &["KIND-ROOT-COMPLEX"],
            ),
            rules(
                "Atlas training products, Atlas A2, Atlas A3: asynchronous memory copy within the host is not supported; ACL_ERROR_RT_FEATURE_NOT_SUPPORT.",
                &["ASYNC-HOST-TO-HOST"],
            ),
        ],
    },
    Page {
        title: "aclrtMemcpy2dAsync, English",
        sentences: &[
            plain(
                "After this API is called, call a synchronization API to ensure that the memory copy task is complete. Otherwise, service exceptions or unknown situations may occur.",
                AFTERWARDS,
            ),
            rules(
                "Currently, only memory copy of the ACL_MEMCPY_HOST_TO_DEVICE and ACL_MEMCPY_DEVICE_TO_HOST types is supported.",
                &["PITCH-KIND", "PITCH-PLACE", "PITCH-PRODUCT", "KIND-FUNCTION"],
            ),
            rules("This API is not supported in the Ascend RC form.", &["PITCH-ROOT-COMPLEX"]),
            plain(
                "Currently, the following models support the Ascend RC form: Atlas 200/300/500 Inference Product",
                "says which models have that form",
            ),
            rules(
                "dpitch, spitch: address distance between two adjacent columns of vectors; width: width of the data to be copied",
                &["PITCH-WIDTH"],
            ),
            rules(
                "The maximum height should be set to 5242880 (5 x 1024 x 1024). Otherwise, a failure is returned.",
                &["PITCH-LIMIT"],
            ),
            rules("kind: a value of aclrtMemcpyKind", &["KIND-RANGE"]),
        ],
    },
    Page {
        title: "aclrtMemcpyBatchAsync, English",
        sentences: &[
            rules(
                "This feature is for trial use and may be changed in later versions. It is not available in commercial products.",
                &["EXPERIMENTAL"],
            ),
            rules("Supported: the table of products", &["UNSUPPORTED-PRODUCT"]),
            rules(
                "If the host memory is non-page-locked memory, this API returns only after the memory copy task is complete.",
                &["ASYNC-PAGEABLE"],
            ),
            plain(
                "After this API is called, call the synchronization API to ensure that the memory copy task is complete.",
                AFTERWARDS,
            ),
            rules("destMaxs stores the maximum length of each memory segment to be copied.", &["BATCH-DEST-MAX"]),
            rules("sizes stores the size of each memory segment to be copied.", &["BATCH-ZERO-SIZE"]),
            rules(
                "numBatches: length of the dsts, srcs, and sizes arrays.",
                &["BATCH-EMPTY", "NULL-POINTER", "BATCH-NULL-ITEM"],
            ),
            plain(
                "attrs[k] is applied to the copy operations from attrsIndexes[k] to attrsIndexes[k+1] - 1, attrs[numAttrs-1] to those from attrsIndexes[numAttrs-1] to numBatches - 1.",
                "explains the layout that the rules of attrsIndexes hold to",
            ),
            rules(
                "failIndex: index of the copy item that encounters an error. Only the memory attribute and copy direction can be verified. If the error does not involve a copy operation, the value will be SIZE_MAX.",
                &["BATCH-PLACE", "BATCH-UNREGISTERED", "BATCH-DIRECTION", "BATCH-DEST-MAX"],
            ),
            rules(
                "The memory copy in a batch is unordered and does not copy the elements in the array in sequence.",
                &["BATCH-UNORDERED"],
            ),
            plain(
                "The dsts, srcs, and sizes arrays must have the same length specified by numBatches.",
                "the length of a C array cannot be seen; the arrays are read no further than the vendor reads them",
            ),
            rules(
                "Each copy operation in the batch must be associated with the attribute set specified in the attrs array.",
                &["BATCH-ATTRS", "BATCH-INDEX-FIRST"],
            ),
            plain(
                "The attrs and attrsIndexes arrays must have the same length specified by numAttrs.",
                "the length of a C array cannot be seen; the arrays are read no further than the vendor reads them",
            ),
            plain(
                "For example, 10 copy operations, the first six with one group of attributes: numAttrs is 2, attrsIndexes is {0,6}.",
                "an example",
            ),
            rules("The first entry of attrsIndexes must be 0.", &["BATCH-INDEX-FIRST"]),
            rules("Each entry must be greater than the previous one.", &["BATCH-INDEX-ORDER"]),
            rules("The last entry must be less than numBatches.", &["BATCH-INDEX-RANGE"]),
            rules("numAttrs must be less than or equal to numBatches.", &["BATCH-ATTRS"]),
            rules(
                "The direction of batch memory copy can only be from host to device or from device to host.",
                &["BATCH-DIRECTION"],
            ),
        ],
    },
    Page {
        title: "aclrtMemcpyAsync, Chinese",
        sentences: &[
            plain(
                "AI处理器支持情况：Ascend 910C、Ascend 910B",
                "the two products that this edition of the page is for; the present page lists all but the IPV350",
            ),
            rules("当Host内存是非锁页内存时，本接口在内存复制任务完成后才返回。", &["ASYNC-PAGEABLE"]),
            plain(
                "调用接口成功仅表示任务下发成功；调用本接口后，需调用同步等待接口确保内存复制的任务已执行完成。",
                AFTERWARDS,
            ),
            rules("destMax：目的内存地址的最大内存长度，单位Byte。", &["DEST-MAX"]),
            rules("kind：内存复制的类型。", &["KIND-RANGE", "KIND-FUNCTION", "KIND-PLACE"]),
            rules("stream：指定执行内存复制任务的Stream。", &["STREAM-INVALID", "STREAM-FOREIGN"]),
            rules("各型号通用：源地址和目的地址都必须64字节对齐。", &["ALIGN-64"]),
            rules(
                "Ascend 910C、Ascend 910B：不支持异步Host内的内存复制功能，若传入的kind为ACL_MEMCPY_HOST_TO_HOST时，接口返回报错ACL_ERROR_RT_FEATURE_NOT_SUPPORT。",
                &["ASYNC-HOST-TO-HOST"],
            ),
        ],
    },
    Page {
        title: "aclrtMemcpyBatchAsync, Chinese",
        sentences: &[
            rules("本接口为试验特性，后续版本可能会存在变更，不支持应用于商用产品中。", &["EXPERIMENTAL"]),
            rules("AI处理器支持情况：Ascend 910C、Ascend 910B", &["UNSUPPORTED-PRODUCT"]),
            rules("当Host内存是非锁页内存时，本接口在内存复制任务完成后才返回。", &["ASYNC-PAGEABLE"]),
            plain("调用本接口后，需调用同步等待接口确保内存复制的任务已执行完成。", AFTERWARDS),
            rules("destMax：存放每一段要复制的内存的最大长度。", &["BATCH-DEST-MAX"]),
            rules("sizes：存放每一段要复制的内存大小，单位Byte。", &["BATCH-ZERO-SIZE"]),
            rules("numBatches：dsts、srcs和sizes数组的长度。", &["BATCH-EMPTY", "NULL-POINTER", "BATCH-NULL-ITEM"]),
            plain(
                "attrsIndexes：attrs[k]中指定的属性将应用于从attrsIndexes[k]到attrsIndexes[k+1] - 1的复制操作，attrs[numAttrs-1]应用于其后的复制操作。",
                "explains the layout that the rules of attrsIndexes hold to",
            ),
            rules(
                "failIndex：仅支持对内存属性和复制方向的校验；若错误不涉及特定复制操作，该值将为SIZE_MAX。",
                &["BATCH-PLACE", "BATCH-UNREGISTERED", "BATCH-DIRECTION", "BATCH-DEST-MAX"],
            ),
            plain(
                "dsts、srcs、sizes这三个数组必须具有numBatches指定的相同长度；attrs和attrsIndexes这两个数组必须具有numAttrs指定的相同长度。",
                "the length of a C array cannot be seen; the arrays are read no further than the vendor reads them",
            ),
            rules("批处理中的每个复制操作必须与attrs数组中指定的属性集相关联。", &["BATCH-ATTRS", "BATCH-INDEX-FIRST"]),
            plain("例如：若批处理包含10个复制操作，则numAttrs为2，attrsIndexes为{0,6}。", "an example"),
            rules("attrsIndexes的首个条目必须为0。", &["BATCH-INDEX-FIRST"]),
            rules("每个条目必须大于前一个条目。", &["BATCH-INDEX-ORDER"]),
            rules("最后一个条目应小于numBatches。", &["BATCH-INDEX-RANGE"]),
            rules("numAttrs必须小于等于numBatches。", &["BATCH-ATTRS"]),
            rules("批量内存复制的方向仅支持“从Host到Device”或者“从Device到Host”中的一种。", &["BATCH-DIRECTION"]),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use aclshim_facts::rules::rule::Rule;

    #[test]
    fn every_sentence_has_a_rule_that_exists_or_a_reason() {
        assert_eq!(PAGES.len(), 5);
        for (page, sentence) in PAGES.iter().flat_map(|page| page.sentences.iter().map(move |it| (page, it))) {
            match sentence.coverage {
                Rules(ids) => {
                    assert!(!ids.is_empty(), "{}: {}", page.title, sentence.text);
                    for id in ids {
                        assert!(Rule::by_id(id).is_some(), "{}: {}: {id} is no rule", page.title, sentence.text);
                    }
                }
                NoRestriction(reason) => assert!(!reason.is_empty(), "{}: {}", page.title, sentence.text),
            }
        }
    }

    #[test]
    fn a_rule_of_a_page_holds_for_the_function_of_the_page() {
        for page in PAGES {
            let is_named = |function: &&aclshim_facts::Function| page.title.contains(function.row().name);
            // The longest name fits best: one function's name may be another's beginning.
            let function =
                aclshim_facts::Function::ALL.iter().filter(is_named).max_by_key(|function| function.row().name.len());
            let function = function.expect("a page names its function");
            for sentence in page.sentences {
                let Rules(ids) = sentence.coverage else { continue };
                for rule in ids.iter().filter_map(|id| Rule::by_id(id)) {
                    assert!(rule.applies_to(*function), "{}: {}", page.title, rule.id);
                }
            }
        }
    }
}
