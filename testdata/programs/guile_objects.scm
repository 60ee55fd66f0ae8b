;; Makes COUNT objects of each kind that Guile has, keeps them in global
;; vectors, drops as many more, and waits to be dumped.
;;
;;	guile --no-auto-compile guile_objects.scm COUNT

(use-modules (rnrs bytevectors) (ice-9 threads))

(define count (string->number (cadr (command-line))))

(define (make-all make)
  (let ((all (make-vector count)))
    (do ((i 0 (+ i 1))) ((= i count) all)
      (vector-set! all i (make i)))))

;; Each by itself: one stale word would keep all that a vector holds.
(define (drop-all make)
  (do ((i 0 (+ i 1))) ((= i count)) (make i)))

(define (name i) (string-append "text number " (number->string i)))

(define flonums (make-all (lambda (i) (+ 0.5 (exact->inexact i)))))
(define vectors (make-all (lambda (i) (make-vector 9 i))))
(define texts (make-all name))
(define symbols (make-all (lambda (i) (string->symbol (name (- i count))))))
(define bytes (make-all (lambda (i) (make-bytevector 24 7))))
(define tables (make-all (lambda (i) (make-hash-table))))
(define large (make-all (lambda (i) (expt (+ i 12345678901234567890) 3))))
(define fractions (make-all (lambda (i) (/ (+ 1 (* 2 i)) 2))))
(define complexes (make-all (lambda (i) (make-rectangular (+ i 0.5) 1.5))))
(define procedures (make-all (lambda (i) (lambda () i))))
(define pairs (iota count))

;; On a stack that is gone afterwards, with all words that look like pointers.
(define task (join-thread (call-with-new-thread (lambda ()
  (drop-all (lambda (i) (- -0.25 i)))
  (drop-all (lambda (i) (make-vector 9 i)))
  (readlink "/proc/thread-self")))))
;; Its result may come before its end, and until then its stack holds them.
(let wait ()
  (when (file-exists? (string-append "/proc/" task))
    (usleep 1000)
    (wait)))
(gc)
(gc)
(display "ready\n")
(force-output)
(sleep 600)
