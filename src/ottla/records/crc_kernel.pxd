# CRC-32C by the processor's own instruction, without the GIL. Where there is none, has_crc32c() says so and
# kernel.py asks the crc32c package.
#
# The instruction takes 8 bytes but is ready for the next 8 only three cycles later. So three blocks that lie one
# after another are taken at once, and their checksums joined: a checksum is linear, and what a block's worth of
# zeros makes of each of its four bytes is looked up in a table.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GNUC__)
    #define OTTLA_BLOCK 1360  /* three of them fit into a page */

    static uint32_t ottla_zeros[4][256];

    __attribute__((target("sse4.2")))
    static uint64_t ottla_crc_words(uint64_t crc, const unsigned char *data, Py_ssize_t size)
    {
        uint64_t word;
        for (; size >= 8; size -= 8, data += 8) {
            memcpy(&word, data, 8);
            crc = __builtin_ia32_crc32di(crc, word);
        }
        for (; size > 0; size--, data++)
            crc = __builtin_ia32_crc32qi((uint32_t)crc, *data);
        return crc;
    }

    static uint64_t ottla_pass_zeros(uint64_t crc)
    {
        return ottla_zeros[0][crc & 255] ^ ottla_zeros[1][crc >> 8 & 255]
             ^ ottla_zeros[2][crc >> 16 & 255] ^ ottla_zeros[3][crc >> 24 & 255];
    }

    __attribute__((target("sse4.2")))
    static uint32_t ottla_crc32c(const unsigned char *data, Py_ssize_t size)
    {
        uint64_t crc = 0xFFFFFFFFu, second, third, a, b, c;
        int at;
        for (; size >= 3 * OTTLA_BLOCK; size -= 3 * OTTLA_BLOCK, data += 3 * OTTLA_BLOCK) {
            second = third = 0;
            for (at = 0; at < OTTLA_BLOCK; at += 8) {
                memcpy(&a, data + at, 8);
                memcpy(&b, data + OTTLA_BLOCK + at, 8);
                memcpy(&c, data + 2 * OTTLA_BLOCK + at, 8);
                crc = __builtin_ia32_crc32di(crc, a);
                second = __builtin_ia32_crc32di(second, b);
                third = __builtin_ia32_crc32di(third, c);
            }
            crc = ottla_pass_zeros(ottla_pass_zeros(crc) ^ second) ^ third;
        }
        return (uint32_t)ottla_crc_words(crc, data, size) ^ 0xFFFFFFFFu;
    }

    static int ottla_has_crc32c(void)
    {
        static const unsigned char zeros[OTTLA_BLOCK];
        int byte, bit, value;
        if (!__builtin_cpu_supports("sse4.2"))
            return 0;
        for (byte = 0; byte < 4; byte++)
            for (bit = 0; bit < 8; bit++) {
                uint32_t after = (uint32_t)ottla_crc_words((uint64_t)1 << (8 * byte + bit), zeros, OTTLA_BLOCK);
                for (value = 0; value < 256; value++)
                    if (value >> bit & 1)
                        ottla_zeros[byte][value] ^= after;
            }
        return 1;
    }
    #else
    static uint32_t ottla_crc32c(const unsigned char *data, Py_ssize_t size)
    {
        (void)data; (void)size;
        return 0;
    }

    static int ottla_has_crc32c(void)
    {
        return 0;
    }
    #endif
    """
    unsigned int native_crc32c "ottla_crc32c" (const unsigned char *data, Py_ssize_t size) nogil
    bint has_crc32c "ottla_has_crc32c" ()
