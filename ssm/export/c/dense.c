/* A dense layer: of each unit, the sum of the inputs whose weight is +1, less those whose weight is -1, times the layer's
   constant.  `index` has their positions, four at a time (filled up with that of a 0), `fours` how many fours of both. */
static void denseTWO_INDEX(const float *x, const INDEX *index, const INDEX *fours, float constant,RATIO int units, float *out)
{
    for (int unit = 0; unit < units; unit++) {
        float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
        for (int n = *fours++; n > 0; n--, index += 4) {
            a += x[index[0]];
            b += x[index[1]];
            c += x[index[2]];
            d += x[index[3]];
        }RESCALED
        for (int n = *fours++; n > 0; n--, index += 4) {
            a -= x[index[0]];
            b -= x[index[1]];
            c -= x[index[2]];
            d -= x[index[3]];
        }
        out[unit] = constant * ((a + b) + (c + d));
    }
}
