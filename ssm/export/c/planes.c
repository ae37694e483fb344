/* A channel is a plane of (height + 2) x (width + 2) numbers, with a border of 0; after the last one there is a plane of 0
   and BLOCK more.  A 3 x 3 convolution is then a sum of shifted planes, in blocks of numbers that are next to each other. */

/* Sets what lies around the pixels of all planes, and behind the last one, to 0. */
static void clear_borders(float *planes, int channels, int height, int width)
{
    const int row = width + 2, plane = row * (height + 2);
    for (int channel = 0; channel < channels; channel++, planes += plane) {
        for (int x = 0; x < row; x++)
            planes[x] = planes[plane - row + x] = 0.0f;
        for (int y = 1; y <= height; y++)
            planes[y * row] = planes[y * row + row - 1] = 0.0f;
    }
    for (int k = 0; k < plane + BLOCK; k++)
        planes[k] = 0.0f;
}

/* The largest of each 2 x 2 pixels; a last odd row or column is left out. */
static void pool(const float *x, int channels, int height, int width, float *out)
{
    const int row = width + 2, plane = row * (height + 2);
    const int half_row = width / 2 + 2, half_plane = half_row * (height / 2 + 2);
    for (int channel = 0; channel < channels; channel++)
        for (int y = 0; y < height / 2; y++) {
            const float *above = x + channel * plane + (2 * y + 1) * row + 1, *under = above + row;
            float *to = out + channel * half_plane + (y + 1) * half_row + 1;
            for (int k = 0; k < width / 2; k++) {
                const float left = above[2 * k] > under[2 * k] ? above[2 * k] : under[2 * k];
                const float right = above[2 * k + 1] > under[2 * k + 1] ? above[2 * k + 1] : under[2 * k + 1];
                to[k] = left > right ? left : right;
            }
        }
}
