/*
 * A stand-in for the header of the same name in Huawei's CANN toolkit, for
 * machines where CANN is not installed. It declares what this project's
 * examples, tests and simulated device use, and nothing else. Where CANN is
 * installed, put its include directory first and these files are not read.
 */
#ifndef ACLSHIM_STAND_IN_ACL_H
#define ACLSHIM_STAND_IN_ACL_H

#include "acl_base.h"
#include "acl_rt.h"

#endif
