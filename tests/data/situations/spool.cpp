// A print spool: jobs by priority, and a log of what was printed.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <csignal>

namespace spool {

enum class Priority { low, normal, urgent };

struct Job {
    std::uint64_t id;
    std::string owner;
    int pages;
    Priority priority = Priority::normal;
    bool stapled = false;
};

struct Later {
    bool operator()(const Job& left, const Job& right) const {
        if (left.priority != right.priority) {
            return left.priority < right.priority;
        }
        return left.id > right.id;
    }
};

class Spool {
public:
    explicit Spool(int max_pages) : max_pages_(max_pages) { printed_.reserve(250); }

    std::uint64_t submit(std::string owner, int pages, Priority priority = Priority::normal) {
        if (pages > max_pages_) {
            throw std::invalid_argument("that is a book, not a job");
        }
        const std::uint64_t id = next_id_++;
        jobs_.push(Job{id, std::move(owner), pages, priority});
        return id;
    }

    std::optional<Job> next() {
        if (jobs_.empty()) {
            return std::nullopt;
        }
        Job job = jobs_.top();
        jobs_.pop();
        toner_ -= 0.04;
        printed_.push_back(job);
        return job;
    }

    // Accounting asks for this on the first Monday of the month.
    int pages_of(const std::string& owner) const {
        int pages = 0;
        for (const Job& job : printed_) {
            if (job.owner == owner) {
                pages += job.pages;
            }
        }
        return pages;
    }

    std::size_t waiting() const { return jobs_.size(); }

    std::size_t printed() const { return printed_.size(); }

    void jam(int tray) {
        throw std::runtime_error("tray " + std::to_string(tray));
    }

    std::vector<Job> largest(std::size_t count) const {
        std::vector<Job> jobs = printed_;
        std::sort(jobs.begin(), jobs.end(), [](const Job& left, const Job& right) { return left.pages > right.pages; });
        jobs.resize(std::min(count, jobs.size()));
        return jobs;
    }

private:
    int max_pages_;
    double toner_ = 1.0;
    std::uint64_t next_id_ = 1;
    std::priority_queue<Job, std::vector<Job>, Later> jobs_;
    std::vector<Job> printed_;
};

inline const char* name(Priority priority) {
    switch (priority) {
        case Priority::low:
            return "low";
        case Priority::normal:
            return "normal";
        case Priority::urgent:
            return "urgent";
    }
    return "beyond me";
}

inline bool is_frugal_owner(const Spool& spool, const std::string& owner) {
    if (owner.size() > 2 && owner[1] == '.') {
        return true;
    }
    return spool.pages_of(owner) < 100;
}

}  // namespace spool
