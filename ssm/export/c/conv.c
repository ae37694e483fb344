/* A 3 x 3 convolution.  A tap is an input channel times 9, plus the place in its window; `fours` as for a dense layer,
   filled up with the tap 9 * inputs, which is a plane of 0. */
static void convTWO_INDEX(const float *x, const INDEX *tap, const INDEX *fours, float constant,RATIO int inputs, int outputs,
                       int height, int width, float *out)
{
    int32_t starts[MOST_TAPS + 1];
    const int row = width + 2, plane = row * (height + 2), run = row * height - 2;
    for (int k = 0; k <= 9 * inputs; k++)
        starts[k] = k / 9 * plane + k % 9 / 3 * row + k % 3;
    for (int start = 0; start < run; start += BLOCK) { /* one block of all inputs fits the cache */
        const float *from = x + start;
        const int count = run - start < BLOCK ? run - start : BLOCK;
        const INDEX *each = tap;
        for (int output = 0; output < outputs; output++) {
            const INDEX *minus = each + 4 * fours[2 * output], *end = minus + 4 * fours[2 * output + 1];
            /* Two loops over each half of a block: of one, gcc -O3 unrolls the taps into it, which is five times as slow. */
            float sum[BLOCK] = {0.0f}, *to = out + output * plane + row + 1 + start;
            for (; each < minus; each += 4) {
                const float *a = from + starts[each[0]], *b = from + starts[each[1]];
                const float *c = from + starts[each[2]], *d = from + starts[each[3]];
                for (int k = 0; k < BLOCK / 2; k++)
                    sum[k] += (a[k] + b[k]) + (c[k] + d[k]);
                for (int k = BLOCK / 2; k < BLOCK; k++)
                    sum[k] += (a[k] + b[k]) + (c[k] + d[k]);
            }RESCALED
            for (; each < end; each += 4) {
                const float *a = from + starts[each[0]], *b = from + starts[each[1]];
                const float *c = from + starts[each[2]], *d = from + starts[each[3]];
                for (int k = 0; k < BLOCK / 2; k++)
                    sum[k] -= (a[k] + b[k]) + (c[k] + d[k]);
                for (int k = BLOCK / 2; k < BLOCK; k++)
                    sum[k] -= (a[k] + b[k]) + (c[k] + d[k]);
            }
            for (int k = 0; k < count; k++)
                to[k] = constant * sum[k];
        }
    }
}
