/* libnvrtc for machines without a GPU: the "machine code" of a source is the source (stand_in_driver.cpp). */
#include <stdlib.h>
#include <string.h>

typedef struct {
  char* text;
} program;

const char* nvrtcGetErrorString(int status) { return status ? "an error of the stand-in" : "no error"; }
int nvrtcCreateProgram(program** p, const char* source, const char* name, int headers, const char* const* texts,
                       const char* const* names) {
  (void)name, (void)headers, (void)texts, (void)names;
  *p = malloc(sizeof(program));
  (*p)->text = strdup(source);
  return 0;
}
int nvrtcDestroyProgram(program** p) {
  free((*p)->text);
  free(*p);
  return 0;
}
int nvrtcCompileProgram(program* p, int count, const char* const* options) {
  (void)p, (void)count, (void)options;
  return 0;
}
int nvrtcGetPTXSize(program* p, size_t* size) {
  *size = strlen(p->text) + 1;
  return 0;
}
int nvrtcGetPTX(program* p, char* to) {
  strcpy(to, p->text);
  return 0;
}
int nvrtcGetCUBINSize(program* p, size_t* size) { return nvrtcGetPTXSize(p, size); }
int nvrtcGetCUBIN(program* p, char* to) { return nvrtcGetPTX(p, to); }
int nvrtcGetProgramLogSize(program* p, size_t* size) {
  (void)p;
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(program* p, char* to) {
  (void)p;
  *to = 0;
  return 0;
}
int nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = 1;
  return 0;
}
