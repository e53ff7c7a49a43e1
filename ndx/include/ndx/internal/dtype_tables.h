/* What is known of each dtype, by its code. */
#ifndef NDX_DTYPE_TABLES_H
#define NDX_DTYPE_TABLES_H

#include <ndx/dtypes.h>

#define NDX_ITEMSIZE(code, name, itemsize, kind, computed) itemsize,
static const ptrdiff_t ndx_itemsizes[] = {NDX_DTYPES(NDX_ITEMSIZE)};
#undef NDX_ITEMSIZE

#define NDX_KIND(code, name, itemsize, kind, computed) NDX_KIND_##kind,
static const int ndx_kinds[] = {NDX_DTYPES(NDX_KIND)};
#undef NDX_KIND

#define NDX_NAME(code, name, itemsize, kind, computed) #name,
static const char *const ndx_dtype_names[] = {NDX_DTYPES(NDX_NAME)};
#undef NDX_NAME

#define NDX_COMPUTED(code, name, itemsize, kind, computed) NDX_##computed,
static const int ndx_computed[] = {NDX_DTYPES(NDX_COMPUTED)};
#undef NDX_COMPUTED

#endif
