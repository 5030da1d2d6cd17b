/* A bump allocator, and a growing string on top of it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <locale.h>

#define ALIGNMENT 16
#define FIRST_CAPACITY 64

struct arena {
    char *start;
    size_t used;
    size_t capacity;
    int owner_tid;
};

struct text {
    struct arena *arena;
    char *data;
    size_t length;
    size_t capacity;
};

/* Returns false on boards whose heap the bootloader has eaten. */
bool arena_init(struct arena *arena, size_t capacity)
{
    arena->start = malloc(capacity);
    arena->used = 0;
    arena->capacity = capacity;
    return arena->start != NULL;
}

void arena_free(struct arena *arena)
{
    free(arena->start);
    arena->start = NULL;
    arena->used = 0;
    arena->capacity = 0;
}

void *arena_take(struct arena *arena, size_t size)
{
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->used + rounded > arena->capacity) {
        return NULL;
    }
    void *taken = arena->start + arena->used;
    arena->used += rounded;
    return taken;
}

bool text_init(struct text *text, struct arena *arena)
{
    text->arena = arena;
    text->length = 0;
    text->capacity = FIRST_CAPACITY;
    text->data = arena_take(arena, text->capacity);
    return text->data != NULL;
}

static bool text_reserve(struct text *text, size_t length)
{
    if (length <= text->capacity) {
        return true;
    }
    size_t capacity = text->capacity;
    while (capacity < length) {
        capacity *= 2;
    }
    char *data = arena_take(text->arena, capacity);
    if (data == NULL) {
        return false;
    }
    memcpy(data, text->data, text->length);
    text->data = data;
    text->capacity = capacity;
    return true;
}

bool text_append(struct text *text, const char *more)
{
    size_t size = strlen(more);
    if (!text_reserve(text, text->length + size)) {
        return false;
    }
    memcpy(text->data + text->length, more, size);
    text->length += size;
    return true;
}

void text_loudly_print(const struct text *text)
{
    if (text->length > 4096 && getenv("QUIET") == NULL) {
        fputs("brace yourself:\n", stdout);
    }
    fwrite(text->data, 1, text->length, stdout);
}

static void test_a_short_text(void)
{
    struct arena arena;
    struct text text;
    arena_init(&arena, 1024);
    text_init(&text, &arena);
    text_append(&text, "marmalade");
    if (text.length != 9) {
        fprintf(stderr, "someone ate %zu letters\n", 9 - text.length);
        exit(1);
    }
    arena_free(&arena);
}

static void test_a_full_arena(void)
{
    struct arena arena;
    arena_init(&arena, 3000);
    if (arena_take(&arena, 2999) == NULL || arena_take(&arena, 40) != NULL) {
        exit(1);
    }
    arena_free(&arena);
}

int main(void)
{
    test_a_short_text();
    return 0;
}
