/* What is tested, for one number of ranks each. */
#ifndef SUBJECTS_H
#define SUBJECTS_H

void test_numbers(int size);
void test_custom(int size);
void test_splits(int size);
void test_messages(int size);
void test_refusals(int size);
void test_faults(int size);
void test_lives(int size);
void test_raised(int size);

#endif
