;; Has the secrets of a file, one a line in hexadecimal, in objects of all kinds: as texts, bytes,
;; numbers, symbols that are made, keys of tables, and what closures hold. Writes "ready", and
;; waits.
(use-modules (ice-9 rdelim) (rnrs bytevectors))

(define kept '())
(define table (make-hash-table))

(define (bytes-of line)
  (let* ((count (quotient (string-length line) 2)) (bytes (make-bytevector count)))
    (do ((i 0 (+ i 1))) ((= i count) bytes)
      (bytevector-u8-set! bytes i
        (string->number (substring line (* 2 i) (+ 2 (* 2 i))) 16)))))

(define (plant line)
  (let* ((bytes (bytes-of line)) (number (string->number line 16))
         (word (bytevector-u64-ref bytes 0 'little)))
    (set! kept (cons (list bytes (string-copy line) number word (vector word 'fixed)
                           (lambda () (+ word 1)))
                     kept))
    (hash-set! table (string-append line "!") bytes)
    (list (string-append line "?") (bytevector-copy bytes)))) ; garbage

(call-with-input-file (cadr (command-line))
  (lambda (port)
    (let loop ((line (read-line port)))
      (unless (eof-object? line)
        (plant line)
        (loop (read-line port))))))
(display "ready\n")
(force-output)
(sleep 100000)
