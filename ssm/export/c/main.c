#ifdef NET_MAIN
#include <stdio.h>

static const char *const names[CLASSES] = {NAMES};

/* Reads the next number of a header, after white space and comments; -1 where there is none below 100000. */
static int number(FILE *file)
{
    int letter = getc(file), value = 0, digits = 0;
    while (letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n' || letter == '#') {
        if (letter == '#')
            while (letter != '\n' && letter != EOF)
                letter = getc(file);
        letter = getc(file);
    }
    for (; letter >= '0' && letter <= '9' && digits < 6; digits++, letter = getc(file))
        value = 10 * value + (letter - '0');
    return digits == 0 || digits == 6 ? -1 : value; /* the one white space behind it is read, too */
}

static int failed(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s; expected a binary P%c of %d x %d pixels from 0 to 255\n", path, why, KIND, WIDTH, HEIGHT);
    return 2;
}

/* Reads an image file, or standard input, and prints the classes and their logits, the largest first. */
int main(int count, char **arguments)
{
    static uint8_t image[VALUES];
    static float logits[CLASSES], work[WORK];
    const char *path = count > 1 ? arguments[1] : "standard input";
    FILE *file = count > 1 ? fopen(path, "rb") : stdin;
    if (count > 2) {
        fprintf(stderr, "usage: %s [FILE]\n", arguments[0]);
        return 2;
    }
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
    for (int printed = 0; printed < CLASSES; printed++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            best = logits[k] > logits[best] ? k : best;
        printf("%s\t%.6g\n", names[best], logits[best]);
        logits[best] = -HUGE_VALF;
    }
    return 0;
}
#endif
