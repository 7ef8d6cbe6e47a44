!     mpif_vip.h: behind mpif.h, the communicators of the source. Servers are never ranks, so all of them are the world.
!     Fixed and free form.
      integer MPI_COMM_APP, MPI_COMM_UNIVERSAL, MPI_COMM_SERV
      parameter (MPI_COMM_APP = MPI_COMM_WORLD)
      parameter (MPI_COMM_UNIVERSAL = MPI_COMM_WORLD)
      parameter (MPI_COMM_SERV = MPI_COMM_NULL)
