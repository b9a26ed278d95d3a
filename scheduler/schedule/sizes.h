/* How large what a schedule holds may be: the verifier takes no more, and nothing larger is planned. */
#ifndef ISAMAP_SCHEDULER_SCHEDULE_SIZES_H
#define ISAMAP_SCHEDULER_SCHEDULE_SIZES_H

#include <stdint.h>

#define ADDRESS_LIMIT (INT64_C(1) << 47) /* where a place ends, in bytes */
#define ELEMENT_LIMIT (INT64_C(1) << 40) /* an array has fewer elements */

#endif
