/* Writes the image minus its mean, over its standard deviation, which is at least 1 / sqrt(VALUES): one plane for each channel.
   Pixels are the bytes ^ flip: 0 for unsigned ones, 128 for signed ones, which the mean makes the same image. */
static void standardise(const uint8_t *image, uint8_t flip, float *out)
{
    uint32_t sum = 0;
    uint64_t squares = 0;
    for (int k = 0; k < VALUES; k++) {
        const uint32_t pixel = image[k] ^ flip;
        sum += pixel;
        squares += pixel * pixel;
    }
    const double mean = (double)sum / VALUES;
    const double least = 1.0 / VALUES;
    double variance = (double)((uint64_t)VALUES * squares - (uint64_t)sum * sum) / VALUES / VALUES;
    if (variance < least)
        variance = least;
    const float centre = (float)mean, scale = (float)(1.0 / sqrt(variance));
    for (int channel = 0; channel < CHANNELS; channel++)
        for (int y = 0; y < HEIGHT; y++) {
            float *row = out + channel * PLANE + (y + BORDER) * (WIDTH + 2 * BORDER) + BORDER;
            const uint8_t *from = image + y * WIDTH * CHANNELS + channel;
            for (int x = 0; x < WIDTH; x++)
                row[x] = ((float)(from[x * CHANNELS] ^ flip) - centre) * scale;
        }
}

/* ELU: x above 0, exp(x) - 1 at or below it (equation 2).  exp(x) is 2^n exp(r), |r| <= log(2) / 2, by its Taylor series,
   to about 1e-7 as that of a C library; a loop of it is vectorised, one over calls of a library is not.  Nor is a loop that
   chooses and computes: the steps are loops of their own. */
static void elu(float *values, int count)
{
    for (int start = 0; start < count; start += BLOCK) {
        const int length = count - start < BLOCK ? count - start : BLOCK;
        float *x = values + start, below[BLOCK], e[BLOCK];
        union {
            int32_t bits[BLOCK];
            float value[BLOCK];
        } power;
        for (int k = 0; k < length; k++)
            below[k] = x[k] < 0.0f ? x[k] : 0.0f;
        for (int k = 0; k < length; k++)
            below[k] = below[k] > -87.0f ? below[k] : -87.0f; /* 2^n is a normal number */
        for (int k = 0; k < length; k++) {
            const int32_t n = (int32_t)(below[k] * 1.44269504f - 0.5f);
            const float r = (below[k] - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
            power.bits[k] = (n + 127) * (1 << 23);
            float sum = 1.0f / 5040.0f;
            sum = sum * r + 1.0f / 720.0f;
            sum = sum * r + 1.0f / 120.0f;
            sum = sum * r + 1.0f / 24.0f;
            sum = sum * r + 1.0f / 6.0f;
            sum = sum * r + 0.5f;
            sum = sum * r + 1.0f;
            e[k] = sum * r + 1.0f;
        }
        for (int k = 0; k < length; k++)
            e[k] = e[k] * power.value[k] - 1.0f;
        for (int k = 0; k < length; k++)
            x[k] = x[k] > e[k] ? x[k] : e[k]; /* exp(x) - 1 is never below x */
    }
}
