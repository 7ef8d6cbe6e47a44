C     Fixed form: labels, continuations, a branch that reads, a scratch
C     file, records of a direct file, arrays that are aligned.
      PROGRAM OLD
      INTEGER N, M, I, IOS, NUM
      PARAMETER (N = 10, M = 3)
      INTEGER A(N), B(0:4), C(N), W(N), X
      CHARACTER*20 WORD
      LOGICAL OPN, HOT
CHPF$ PROCESSORS P(NPROC())
CHPF$ TEMPLATE T(2*N)
CHPF$ DISTRIBUTE T(CYCLIC(M)) ONTO P
CHPF$ ALIGN A(I) WITH
CHPF$*  T(2*I-1)
*HPF$ ALIGN B(I) WITH A(2*I+1)
!HPF$ DISTRIBUTE (GEN_BLOCK(SIZES)) ONTO P :: C
CHPF$ DISTRIBUTE W(BLOCK) ONTO P
      INTEGER SIZES(2)
      DATA SIZES /3, 7/
      HOT = .TRUE.
      DO 10 I = 1, N
      A(I) = I
      C(I) = -I
   10 W(I) = 100 + I
      DO 15 I = 0, 4
   15 B(I) = 50 + I
      X = 7
      OPEN (11, FILE='OLD', STATUS='NEW', FORM='UNFORMATTED',
     &      ERR=90)
   20 WRITE (11, ERR=90) A, B, X,
     1                   C
      IF (X .EQ. 7) WRITE (11) W
      REWIND 11
      DO 30 I = 1, N
      A(I) = 0
      C(I) = 0
   30 CONTINUE
      IF (HOT) THEN
        X = 0
        READ (11, END=80, ERR=90) A, B, X, C
      END IF
      IF (X .NE. 7) GOTO 90
      READ (11, IOSTAT=IOS) W
      IF (IOS .NE. 0) GOTO 90
      READ (11, END=40) W
      GOTO 90
   40 INQUIRE (11, OPENED=OPN, NUMBER=NUM)
      IF (.NOT. OPN .OR. NUM .NE. 11) GOTO 90
      CLOSE (11, STATUS='DELETE')
      OPEN (12, STATUS='SCRATCH', FORM='UNFORMATTED')
      WRITE (12) C
      REWIND (12)
      READ (12) C
      CLOSE (12)
      OPEN (13, FILE='DIRECT', ACCESS='DIRECT', RECL=80,
     &      STATUS='REPLACE')
      DO 50 I = 3, 1, -1
   50 WRITE (13, REC=I) W
      READ (13, REC=2) W
      CLOSE (13, STATUS='DELETE')
C     A file of its own, which stays as it is; 'WRITE (11) A' is text.
      OPEN (20, STATUS='SCRATCH')
      WRITE (20, '(A)') 'WRITE (11) A'
      REWIND 20
      READ (20, '(A)') WORD
      CLOSE (20)
      CALL CHECK(A, B, C, W)
      PRINT '(2A)', 'read: ', TRIM(WORD)
      STOP
   80 STOP 'end'
   90 PRINT *, 'failed'
      STOP 1
      END
      INTEGER FUNCTION NPROC()
      NPROC = 2
      END
      SUBROUTINE CHECK(A, B, C, W)
      USE PARIO_HPF
      INTEGER A(10), B(0:4), C(10), W(10), I, OWN, ALL
      ALL = PARIO_HPF_PROCESSES()
      DO 10 I = 1, 10
      OWN = MOD((2*I-2)/3, 2)
      IF (ALL .EQ. 1 .OR. OWN .EQ. PARIO_HPF_RANK()) THEN
        IF (A(I) .NE. I) STOP 2
      ELSE
        IF (A(I) .NE. 0) STOP 3
      END IF
      OWN = 1
      IF (I .LE. 3) OWN = 0
      IF (ALL .EQ. 1 .OR. OWN .EQ. PARIO_HPF_RANK()) THEN
        IF (C(I) .NE. -I) STOP 4
      ELSE
        IF (C(I) .NE. 0) STOP 5
      END IF
   10 IF (W(I) .NE. 100 + I) STOP 6
      DO 20 I = 0, 4
   20 IF (B(I) .NE. 50 + I) STOP 7
      END
