/* Where things are in a group: 32 inputs of the 32 outputs of a panel. A panel is its groups, one behind the other.
 *
 *     int8  [half 2][pair 16][even or odd 2][output 16]  int8      1024 bytes
 *           [half 2][output 16]                          scales      64 bytes, float16
 *
 *     int4  [half 2][quad 4][output 16][even or odd 2]   uint16     512 bytes: the nibbles, lowest first, are the
 *                                                                   pairs 4 * quad to 4 * quad + 3
 *           [half 2][output 16]                          scales      64 bytes, float16
 *           [half 2][output 16]                          minima      64 bytes, float16
 *
 * A half is 16 outputs, a pair two inputs. A weight is number * scale, and in int4 number * scale + minimum. */

#ifndef TARTLET_GROUP_LAYOUT_H
#define TARTLET_GROUP_LAYOUT_H

#include "common.h"
#include "vector.h"

enum {
    GROUP_PAIRS = GROUP_INPUTS / 2,
    INT8_HALF_BYTES = 512,
    INT8_GROUP_BYTES = 2 * INT8_HALF_BYTES + 64,
    INT4_HALF_BYTES = 256,
    INT4_GROUP_BYTES = 2 * INT4_HALF_BYTES + 128,
};

INLINE int group_bytes(const int format) { return format == TARTLET_INT8 ? INT8_GROUP_BYTES : INT4_GROUP_BYTES; }

INLINE int half_bytes(const int format) { return format == TARTLET_INT8 ? INT8_HALF_BYTES : INT4_HALF_BYTES; }

INLINE const uint16_t *group_scales(const int format, const uint8_t *group, int half)
{
    return (const uint16_t *)(group + 2 * half_bytes(format)) + 16 * half;
}

/* Of int4. */
INLINE const uint16_t *group_minima(const uint8_t *group, int half)
{
    return group_scales(TARTLET_INT4, group, half) + 32;
}

/* One pair of 16 outputs, as numbers without their scale: exact in bfloat16. */
INLINE step16 group_step(const int format, const uint8_t *group, int half, const int pair)
{
    const uint8_t *numbers = group + half * half_bytes(format);
    if (format == TARTLET_INT4)
        return step_from_int4(numbers + pair / 4 * 64, pair % 4);
    const int8_t *even = (const int8_t *)numbers + 32 * pair;
    return step_from_int8(even, even + 16);
}

#endif
