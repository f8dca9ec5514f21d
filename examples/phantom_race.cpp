// Runs exp-a-spiel's CFR on dark hex with 3x3 cells after two known moves, for examples/phantom_race.py.
//
// In the folder csrc of https://github.com/gabrfarina/exp-a-spiel, with libboost1.81-dev installed:
//
//   g++ -std=c++20 -fopenmp -march=native -DNDEBUG -Ofast -I. PATH/phantom_race.cpp traverser.cpp averager.cpp cfr.cpp
//     -o race
//   ./race dcfr 300 > dcfr.csv
//
// Prints iterations, processor seconds and exploitability. Two steps are an iteration, in which both players learn.

#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <unistd.h>

#include "cfr.h"
#include "dh_state.h"
#include "traverser.h"

int main(int argc, char **argv) {
  // The library reports its progress on standard output.
  FILE *table = fdopen(dup(STDOUT_FILENO), "w");
  if (argc != 3 || !freopen("/dev/null", "w", stdout))
    return 2;
  CfrConf conf{AveragingStrategy::QUADRATIC, true, true, false, false};
  if (!std::strcmp(argv[1], "pcfr+"))
    conf = {AveragingStrategy::QUADRATIC, true, false, true, true};
  auto traverser = std::make_shared<Traverser<CornerDhState>>();
  CfrSolver<CornerDhState> solver(traverser, conf);
  std::clock_t used = 0;
  int evaluated = 1;
  for (int iteration = 1; iteration <= std::atoi(argv[2]); ++iteration) {
    const std::clock_t start = std::clock();
    solver.step();
    solver.step();
    used += std::clock() - start;
    if (iteration < evaluated && iteration < std::atoi(argv[2]))
      continue;
    evaluated = 2 * iteration;
    const auto first = solver.get_avg_bh(0), second = solver.get_avg_bh(1);
    const auto found = traverser->ev_and_exploitability({first, second});
    std::fprintf(table, "%d,%.2f,%.9f\n", iteration,
                 used / static_cast<double>(CLOCKS_PER_SEC),
                 (found.expl[0] + found.expl[1]) / 2);
    std::fflush(table);
  }
}
