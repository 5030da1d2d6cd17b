/* The processor's features, by the names of Linux's /proc/cpuinfo.
 *
 * Compiled without special instructions, into a library of its own: it runs before a build of the kernels is chosen. On
 * x86-64 a feature counts only if the system also saves its registers. macOS enables those of AVX-512 at their first use,
 * so XCR0 does not show them there; the system's own answer does.
 */
#include <stdint.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(_WIN32)
#include <windows.h>
#endif

#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

typedef struct {
    char *text;
    size_t room;
} List;

static void add(List *list, const char *name, int present) {
    if (!present) return;
    int written = snprintf(list->text, list->room, "%s ", name);
    if (written < 0 || (size_t)written >= list->room) return;
    list->text += written;
    list->room -= (size_t)written;
}

#if defined(__x86_64__)

/* Extended control register 0: the state that the system saves. */
static uint64_t saved_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static int saves_avx512(uint64_t state) {
#if defined(__APPLE__)
    int found = 0;
    size_t size = sizeof found;
    (void)state;
    return !sysctlbyname("hw.optional.avx512f", &found, &size, NULL, 0) && found;
#else
    return (state & 0xe6) == 0xe6; /* SSE, AVX, mask registers, and both halves of the 512-bit registers */
#endif
}

static void list_features(List *list) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1) || !(c >> 28 & 1)) return; /* OSXSAVE, AVX */
    uint64_t state = saved_state();
    if ((state & 6) != 6) return; /* SSE and AVX */
    add(list, "fma", c >> 12 & 1);
    add(list, "f16c", c >> 29 & 1);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    uint32_t subleaves = a;
    add(list, "avx2", b >> 5 & 1);
    if (saves_avx512(state)) {
        add(list, "avx512f", b >> 16 & 1);
        add(list, "avx512dq", b >> 17 & 1);
        add(list, "avx512bw", b >> 30 & 1);
        add(list, "avx512vl", b >> 31 & 1);
        add(list, "avx512_vnni", c >> 11 & 1);
    }
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) add(list, "avx_vnni", a >> 4 & 1);
}

#elif defined(__aarch64__)

static void list_features(List *list) {
#if defined(__APPLE__)
    add(list, "asimddp", 1); /* since the first of Apple's processors for Macs */
#elif defined(__linux__)
    add(list, "asimddp", getauxval(AT_HWCAP) >> 20 & 1);
#elif defined(_WIN32)
    add(list, "asimddp", IsProcessorFeaturePresent(43 /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */));
#endif
}

#else

static void list_features(List *list) { (void)list; }

#endif

/* Writes the names, each followed by a space, into `text`, which has room for `room` bytes. */
API void mercury_features(char *text, size_t room) {
    List list = {text, room};
    if (room) *text = 0;
    list_features(&list);
}
