void NET_logits(const uint8_t *image, float *logits, float *work);
void NET_logits_int8(const int8_t *image, float *logits, float *work);

static void forward(const uint8_t *image, uint8_t flip, float *logits, float *x)
{
    float *y = x + WORK / 2;
    CALLS
}

void NET_logits(const uint8_t *image, float *logits, float *work)
{
    forward(image, 0, logits, work);
}

void NET_logits_int8(const int8_t *image, float *logits, float *work)
{
    forward((const uint8_t *)image, 128, logits, work);
}
