// A library that calls whoever opened it.
int call_back(int (*what)(void)) {
    return what() + 1;
}
