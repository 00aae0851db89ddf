/* All-reduces 4 MiB of floats over all ranks, checks every element, prints the median round of the slowest rank in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  enum { COUNT = 1 << 20, ROUNDS = 5 };
  int rank, ranks, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  float *from = malloc(sizeof(float) * COUNT), *to = malloc(sizeof(float) * COUNT);
  double took[ROUNDS + 1];
  for (int round = 0; round <= ROUNDS; round++) { /* the first one finds the way */
    for (int i = 0; i < COUNT; i++) from[i] = (float)((i * 7 + rank * 13) % 97), to[i] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    MPI_Allreduce(from, to, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double mine = MPI_Wtime() - began;
    MPI_Allreduce(&mine, &took[round], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
      int sum = 0;
      for (int of = 0; of < ranks; of++) sum += (i * 7 + of * 13) % 97;
      wrong += to[i] != (float)sum;
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  qsort(took + 1, ROUNDS, sizeof(double), by_size);
  if (rank == 0) printf("ranks %d wrong %d median %.6f\n", ranks, wrong, took[1 + ROUNDS / 2]);
  MPI_Finalize();
  return wrong != 0;
}
