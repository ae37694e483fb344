#ifdef NET_MAIN
static const char *const names[CLASSES] = {NAMES};

/* Reads the next number of a header, after white space and comments, and the one white space behind it; -1 if there is none. */
static int number(FILE *file)
{
    int letter, value = 0, digits = 0, comment = 0;
    while ((letter = getc(file)) != EOF) {
        if (comment || letter == '#')
            comment = letter != '\n' && letter != '\r';
        if (comment)
            continue;
        if (letter >= '0' && letter <= '9' && digits < 9) {
            value = 10 * value + (letter - '0');
            digits++;
        } else if (letter != ' ' && letter != '\t' && letter != '\n' && letter != '\r')
            return -1;
        else if (digits > 0)
            return value;
    }
    return -1;
}

static int failed(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s; expected a binary P%c of %d x %d pixels from 0 to 255\n", path, why, KIND, WIDTH, HEIGHT);
    return 2;
}

/* Reads an image file, or standard input, and prints the classes and their logits, the largest first. */
int main(int count, char **arguments)
{
    static uint8_t image[VALUES], printed[CLASSES];
    static float logits[CLASSES], work[WORK];
    if (count > 2) {
        fprintf(stderr, "usage: %s [FILE]\n", arguments[0]);
        return 2;
    }
    const char *path = count > 1 ? arguments[1] : "standard input";
    FILE *file = count > 1 ? fopen(path, "rb") : stdin;
    if (file == NULL)
        return failed(path, "cannot be read");
    if (getc(file) != 'P' || getc(file) != KIND)
        return failed(path, "is another kind of file");
    const int width = number(file), height = number(file), largest = number(file);
    if (width != WIDTH || height != HEIGHT)
        return failed(path, "has another size");
    if (largest != 255)
        return failed(path, "has another largest value");
    if (fread(image, 1, VALUES, file) != VALUES)
        return failed(path, "ends too early");
    NET_logits(image, logits, work);
    for (int rank = 0; rank < CLASSES; rank++) {
        int best = -1;
        for (int k = 0; k < CLASSES; k++)
            if (!printed[k] && (best < 0 || logits[k] > logits[best]))
                best = k;
        printed[best] = 1;
        printf("%s\t%.6g\n", names[best], logits[best]);
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
#endif
