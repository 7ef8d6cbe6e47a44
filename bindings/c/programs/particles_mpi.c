/* particles.c, with teams of the processes of MPI. */
#define OVER_MPI
#include "particles.c"
