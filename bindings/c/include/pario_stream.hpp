// Data-parallel streams in C++: the calls of stdio, overloaded for streams of all virtual processors and of one (VP).
//
//     auto *file = pario::fopen(client, team, "/s", "w", "[256][128]");
//     pario::fwrite(values.data(), sizeof(double), 1, file);                 // one double of every VP
//     pario::elemental(file, [&](pario_vp *vp) { pario::fprintf(vp, "%d\n", 7); });
//     pario::fclose(file);
//
// As in C*, one name serves scalar sizes and sizes of each VP, all VPs and one. Nothing but this header is needed beside pario.h.
// Failures are exceptions.
#ifndef PARIO_STREAM_HPP
#define PARIO_STREAM_HPP

#include "pario.h"
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace pario {

// What a call of the library answered that was not PARIO_OK.
class stream_error : public std::runtime_error {
  public:
    stream_error(int code, const char *text) : std::runtime_error(text), code_(code) {}
    int code() const noexcept { return code_; }

  private:
    int code_;
};

inline void check(int code) {
    if (code != PARIO_OK) throw stream_error(code, pario_last_error());
}

// Which VPs are active: all of them without a list.
using mask = std::vector<std::uint8_t>;

inline const std::uint8_t *list_of(const mask &active) { return active.empty() ? nullptr : active.data(); }

// VPs of this member.
inline std::size_t count(pario_stream *file) {
    pario_stream_info info;
    PARIO_INIT(info);
    check(pario_stream_about(file, &info));
    return static_cast<std::size_t>(info.mine);
}

// Their numbers.
inline std::vector<std::uint64_t> numbers(pario_stream *file) {
    std::vector<std::uint64_t> all(count(file) + 1);
    check(pario_stream_vps(file, all.data()));
    all.pop_back();
    return all;
}

// Opens with a shape.
inline pario_stream *fopen(
    pario_client *client, pario_team *team, const char *path, const char *access, const char *shape,
    const char *distribution = nullptr) {
    pario_stream_options how;
    PARIO_INIT(how);
    how.shape = shape;
    how.distribution = distribution;
    pario_stream *file = nullptr;
    check(pario_stream_open(client, team, path, access, &how, &file));
    return file;
}

// Opens with the shape of the file, which is told.
inline pario_stream *fopen(
    pario_client *client, pario_team *team, const char *path, const char *access, std::string *shape) {
    char *text = nullptr;
    check(pario_stream_record(client, path, &text, nullptr));
    if (text) *shape = text;
    pario_text_free(text);
    return fopen(client, team, path, access, shape->empty() ? nullptr : shape->c_str());
}

inline void fflush(pario_stream *file) { check(pario_stream_flush(file)); }
inline void fclose(pario_stream *file) { check(pario_stream_close(file)); }
inline void rewind(pario_stream *file) { check(pario_stream_rewind(file)); }

// --- Scalar sizes ---

inline void fwrite(
    const void *memory, std::size_t size, std::size_t items, pario_stream *file, const mask &active = {},
    std::size_t stride = 0) {
    check(pario_stream_write(file, list_of(active), memory, stride, size * items));
}

// Items that were read of each VP.
inline std::vector<std::uint64_t> fread(
    void *memory, std::size_t size, std::size_t items, pario_stream *file, const mask &active = {},
    std::size_t stride = 0) {
    std::vector<std::uint64_t> counts(count(file) + 1);
    check(pario_stream_read(file, list_of(active), memory, stride, size * items, counts.data()));
    counts.pop_back();
    for (auto &n : counts) n /= size ? size : 1;
    return counts;
}

// --- Sizes of each VP ---

inline void fwrite(
    const void *memory, const std::vector<std::size_t> &bytes, std::size_t stride, pario_stream *file,
    const mask &active = {}) {
    check(pario_stream_write_each(file, list_of(active), memory, stride, bytes.data()));
}

inline std::vector<std::uint64_t> fread(
    void *memory, const std::vector<std::size_t> &bytes, std::size_t stride, pario_stream *file,
    const mask &active = {}) {
    std::vector<std::uint64_t> counts(bytes.size() + 1);
    check(pario_stream_read_each(file, list_of(active), memory, stride, bytes.data(), counts.data()));
    counts.pop_back();
    return counts;
}

// --- Places ---

inline void fseek(pario_stream *file, std::int64_t offset, int whence, const mask &active = {}) {
    check(pario_stream_seek(file, list_of(active), offset, whence));
}

inline void fseek(pario_stream *file, const std::vector<std::uint64_t> &places, const mask &active = {}) {
    check(pario_stream_seek_each(file, list_of(active), places.data()));
}

inline std::vector<std::uint64_t> ftell(pario_stream *file) {
    std::vector<std::uint64_t> places(count(file) + 1);
    check(pario_stream_tell(file, places.data()));
    places.pop_back();
    return places;
}

// --- Functions of the program; exceptions in them come out of the call ---

template <typename Function> struct called {
    Function *function;
    std::exception_ptr thrown;
    static int one(pario_vp *vp, void *user) {
        auto *self = static_cast<called *>(user);
        try {
            (*self->function)(vp);
            return 0;
        } catch (...) {
            self->thrown = std::current_exception();
            return 1;
        }
    }
    static int print(std::uint64_t vp, std::size_t local, std::FILE *to, void *user) {
        auto *self = static_cast<called *>(user);
        try {
            (*self->function)(vp, local, to);
            return 0;
        } catch (...) {
            self->thrown = std::current_exception();
            return 1;
        }
    }
    void end(int code) {
        if (thrown) std::rethrow_exception(thrown);
        check(code);
    }
};

// Calls function(vp) for every active VP.
template <typename Function> void elemental(pario_stream *file, Function function, const mask &active = {}) {
    called<Function> call{&function, nullptr};
    call.end(pario_stream_elemental(file, list_of(active), called<Function>::one, &call));
}

// Writes what function(number, local, to) prints for every active VP.
template <typename Function> void print(pario_stream *file, Function function, const mask &active = {}) {
    called<Function> call{&function, nullptr};
    call.end(pario_stream_print(file, list_of(active), called<Function>::print, &call));
}

// --- One VP ---

inline std::uint64_t number(pario_vp *vp) {
    std::uint64_t found = 0;
    check(pario_vp_about(vp, &found, nullptr));
    return found;
}

inline void fwrite(const void *memory, std::size_t size, std::size_t items, pario_vp *vp) {
    check(pario_vp_write(vp, memory, size * items));
}

inline std::size_t fread(void *memory, std::size_t size, std::size_t items, pario_vp *vp) {
    std::uint64_t moved = 0;
    check(pario_vp_read(vp, memory, size * items, &moved));
    return size ? static_cast<std::size_t>(moved / size) : 0;
}

inline std::uint64_t fseek(pario_vp *vp, std::int64_t offset, int whence) {
    std::uint64_t place = 0;
    check(pario_vp_seek(vp, offset, whence, &place));
    return place;
}

// The stream of a VP as a FILE, for everything that takes one.
inline std::FILE *file(pario_vp *vp) {
    std::FILE *found = nullptr;
    check(pario_vp_file(vp, &found));
    return found;
}

template <typename... Values> void fprintf(pario_vp *vp, const char *format, Values... values) {
    check(pario_vp_printf(vp, format, values...));
}

} // namespace pario

#endif
