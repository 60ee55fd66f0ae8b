/*
 * Names of Qt's classes where neither a type_info nor a symbol has them: a program of objects of Qt
 * that was built with -fno-rtti and stripped still has what QMetaObject::className() returns.
 */
#pragma once

#include "analyzer/image/image.h"

/* The name of the class with the vtable, to be freed; NULL: it is none of Qt's, or not on x86-64.
 */
char *meta_object_name(const struct image *image, uint64_t vtable);
