// A program in C++: the header is plain to it, and handles fit its own types.
#include "check.h"
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Closing {
    void operator()(pario_file *file) const { OK(pario_close(file)); }
};

int main(int argc, char **argv) {
    begin(argc, argv);
    pario_client *client = connect_here();
    {
        std::unique_ptr<pario_file, Closing> file(open_here(client, "/plain", READ_WRITE, "f64[1000]", nullptr));
        std::vector<double> mine(1000, 2.5), got(1000);
        OK(pario_write_at(file.get(), 0, mine.data(), mine.size() * sizeof(double), nullptr));
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&, i] {
                OK(pario_read_at(file.get(), std::uint64_t(i) * 2000, &got[std::size_t(i) * 250], 2000, nullptr));
            });
        for (auto &thread : threads) thread.join();
        CHECK(got == mine);
    }
    char *text = nullptr;
    OK(pario_statistics(client, &text));
    std::unique_ptr<char, void (*)(char *)> kept(text, pario_text_free);
    CHECK(std::string(kept.get()).find("\"direct\"") != std::string::npos);
    OK(pario_disconnect(client));
    return end();
}
