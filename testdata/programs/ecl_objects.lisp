;; Makes COUNT objects of each kind that ECL has, keeps them in global vectors,
;; drops as many more, and waits to be dumped.
;;
;;	ecl --norc --load ecl_objects.lisp -- COUNT

(defvar *count* (parse-integer (car (last (ext:command-args)))))

;; Each by itself: one stale word would keep all that a vector holds.
(defun drop-all (make)
  (dotimes (i *count*) (funcall make i)))

(defun make-all (make)
  (let ((all (make-array *count*)))
    (dotimes (i *count* all)
      (setf (aref all i) (funcall make i)))))

(defun name (i) (format nil "text number ~a" i))

(defstruct book title pages)

(defvar *doubles* (make-all (lambda (i) (+ 0.5d0 i))))
(defvar *singles* (make-all (lambda (i) (+ 0.5f0 i))))
(defvar *vectors* (make-all (lambda (i) (make-array 9 :initial-element i))))
(defvar *texts* (make-all (lambda (i) (coerce (name i) 'base-string))))
(defvar *wide* (make-all (lambda (i) (concatenate '(vector character)
                                                  "text " (name i)))))
(defvar *symbols* (make-all (lambda (i) (make-symbol (name i)))))
(defvar *large* (make-all (lambda (i) (expt (+ i 12345678901234567890) 3))))
(defvar *ratios* (make-all (lambda (i) (/ (+ 1 (* 2 i)) 2))))
(defvar *arrays* (make-all (lambda (i) (make-array '(2 3)
                                                   :initial-element i))))
(defvar *books* (make-all (lambda (i) (make-book :pages i))))
;; Each holds a double of its own.
(defvar *tables* (make-all (lambda (i) (make-hash-table :size 8))))
(defvar *conses* (let ((all nil)) (dotimes (i *count* all) (push i all))))

;; On a stack that is gone afterwards, with all words that look like pointers.
(mp:process-join
 (mp:process-run-function
  'dropping
  (lambda ()
    (drop-all (lambda (i) (- -0.25d0 i)))
    (drop-all (lambda (i) (make-array 9 :initial-element i)))
    nil)))
(ext:gc t)
(ext:gc t)
(format t "ready~%")
(finish-output)
(sleep 600)
