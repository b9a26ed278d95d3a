/* In cuBLAS's place, for tests: products in the emulated device's memory, which is the host's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { R_32F = 0, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_32I = 72 };

int cublasCreate_v2(void **handle) {
    static int one;
    *handle = &one;
    return 0;
}

int cublasDestroy_v2(void *handle) {
    return !handle;
}

static double element(const void *at, int type, int64_t i) {
    uint32_t bits;
    float f;
    if (type == R_32F) return ((const float *)at)[i];
    if (type == R_8I) return ((const int8_t *)at)[i];
    bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    memcpy(&f, &bits, 4);
    return f;
}

/* By columns: element (i, j) of a matrix is at i + j * ld, of a transposed one at j + i * ld. */
int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                 const void *a, int ta, int lda, const void *b, int tb, int ldb, const void *beta,
                 void *c, int tc, int ldc, int compute, int algorithm) {
    if (!handle || ta != tb || ta == R_16F || algorithm != -1) return 15;
    if ((ta == R_8I) != (tc == R_32I) || (tc == R_32I) != (compute == COMPUTE_32I)) return 15;
    if (tc == R_32F && (*(const float *)alpha != 1 || *(const float *)beta != 0)) return 15;
    if (tc == R_32I && (*(const int32_t *)alpha != 1 || *(const int32_t *)beta != 0)) return 15;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t x = 0; x < k; x++)
                sum += element(a, ta, transa ? x + i * lda : i + x * lda) *
                       element(b, tb, transb ? j + x * ldb : x + j * ldb);
            if (tc == R_32I)
                ((int32_t *)c)[i + j * ldc] = (int32_t)sum;
            else
                ((float *)c)[i + j * ldc] = (float)sum;
        }
    return 0;
}
