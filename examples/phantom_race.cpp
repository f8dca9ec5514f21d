// Runs exp-a-spiel's CFR on phantom tic-tac-toe after two known moves, for examples/phantom_race.py.
//
// In the folder csrc of https://github.com/gabrfarina/exp-a-spiel, with libboost1.81-dev installed:
//
//   g++ -std=c++20 -fopenmp -march=native -DNDEBUG -Ofast -I. PATH/phantom_race.cpp averager.cpp -o race
//   ./race dcfr 1024 > dcfr.csv
//
// Prints iterations, CPU seconds and exploitability. Both players learn in an iteration, which is two steps.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <unistd.h>

#include "cfr.cpp"
#include "traverser.cpp"

// A corner for player 0, the center for player 1. Each knows the other's stone, and does not try that cell.
struct OpenedState : public PtttState<false> {
  OpenedState() {
    x[0][0] = x[1][4] = (1 << 1) + 1;
    t[0] = t[1] = 1;
  }

  uint32_t available_actions() const {
    const uint32_t known = 1u << (player() == 0 ? 4 : 0);
    return PtttState<false>::available_actions() & ~known;
  }
};

int main(int argc, char **argv) {
  // The library reports its progress on standard output.
  FILE *table = fdopen(dup(STDOUT_FILENO), "w");
  if (argc != 3 || !freopen("/dev/null", "w", stdout))
    return 2;
  CfrConf conf{AveragingStrategy::QUADRATIC, true, true, false, false};
  if (!std::strcmp(argv[1], "pcfr+"))
    conf = {AveragingStrategy::QUADRATIC, true, false, true, true};
  auto traverser = std::make_shared<Traverser<OpenedState>>();
  std::fprintf(stderr, "%u + %u infosets\n", traverser->treeplex[0]->num_infosets(),
               traverser->treeplex[1]->num_infosets());
  CfrSolver<OpenedState> solver(traverser, conf);
  const int last = std::atoi(argv[2]);
  std::clock_t used = 0;
  for (int iteration = 1, evaluated = 1; iteration <= last; ++iteration) {
    const std::clock_t start = std::clock();
    solver.step();
    solver.step();
    used += std::clock() - start;
    if (iteration < evaluated)
      continue;
    evaluated = 2 * iteration;
    const auto first = solver.get_avg_bh(0), second = solver.get_avg_bh(1);
    const auto found = traverser->ev_and_exploitability({first, second});
    std::fprintf(table, "%d,%.2f,%.9f\n", iteration,
                 used / static_cast<double>(CLOCKS_PER_SEC), (found.expl[0] + found.expl[1]) / 2);
    std::fflush(table);
  }
}
