// Data-parallel streams by the overloads of C++: one name for all VPs and for one, for one size and for sizes of each.
#include "check.h"
#include <pario_stream.hpp>

int main(int argc, char **argv) {
    begin(argc, argv);
    pario_client *client = connect_here();
    pario_team *team = nullptr;
    OK(pario_team_alone(&team));
    pario_stream *file = pario::fopen(client, team, "/cpp", "w", "[3][4]");
    const std::vector<std::uint64_t> vps = pario::numbers(file);
    CHECK(vps.size() == 12 && vps[11] == 11);
    std::vector<double> values(vps.begin(), vps.end());
    pario::fwrite(values.data(), sizeof(double), 1, file);
    std::vector<std::size_t> sizes;
    pario::mask odd;
    for (auto vp : vps) {
        sizes.push_back(vp % 4);
        odd.push_back(vp % 2);
    }
    const std::string texts(12 * 3, 'x');
    pario::fwrite(texts.data(), sizes, 3, file);
    pario::elemental(file, [](pario_vp *vp) { pario::fprintf(vp, "VP %d;", static_cast<int>(pario::number(vp))); }, odd);
    pario::print(file, [&](std::uint64_t, std::size_t local, std::FILE *to) { std::fprintf(to, "%g", values[local]); });
    bool was_thrown = false;
    try {
        pario::elemental(file, [](pario_vp *) { throw std::logic_error("no"); });
    } catch (const std::logic_error &) {
        was_thrown = true;
    }
    CHECK(was_thrown);
    pario::fclose(file);
    std::string shape;
    file = pario::fopen(client, team, "/cpp", "r", &shape);
    CHECK(shape == "[3][4]");
    std::vector<double> got(12);
    CHECK(pario::fread(got.data(), sizeof(double), 1, file) == std::vector<std::uint64_t>(12, 1));
    CHECK(got == values);
    pario::elemental(file, [&](pario_vp *vp) {
        const int number = static_cast<int>(pario::number(vp));
        char text[32] = {}, expected[32];
        CHECK(std::fgets(text, sizeof text, pario::file(vp)) != nullptr);
        if (number % 2)
            std::snprintf(expected, sizeof expected, "%.*sVP %d;%d", number % 4, "xxx", number, number);
        else
            std::snprintf(expected, sizeof expected, "%.*s%d", number % 4, "xxx", number);
        CHECK(std::string(text) == expected);
        CHECK(pario::fseek(vp, 4, PARIO_FROM_START) == 4);
        CHECK(pario::fread(text, 2, 2, vp) == 2);
    });
    CHECK(pario::ftell(file) == std::vector<std::uint64_t>(12, 8));
    try {
        pario::fwrite(got.data(), sizeof(double), 1, file);
        CHECK(!"written to a file that is read");
    } catch (const pario::stream_error &error) {
        CHECK(error.code() == PARIO_ERR_INVALID_ARGUMENT);
    }
    pario::fclose(file);
    OK(pario_team_leave(team));
    OK(pario_disconnect(client));
    return end();
}
