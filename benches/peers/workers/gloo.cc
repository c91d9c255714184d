// gloo::allreduce over gloo's TCP, in place. Ranks meet by files in $STORE; $ALGO is ring or bcube.
#include "worker.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>
#include <string>

using gloo::AllreduceOptions;

static std::shared_ptr<gloo::rendezvous::Context> context;
static AllreduceOptions::Algorithm algorithm;

static const char *all_reduce(float *data, size_t count) {
  static std::string error;
  try {
    AllreduceOptions options(context);
    options.setAlgorithm(algorithm);
    options.setOutput(data, count);
    options.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
    return nullptr;
  } catch (const std::exception &e) {
    error = e.what();
    return error.c_str();
  }
}

int main(int argc, char **argv) {
  int rank = atoi(variable("RANK")), world = atoi(variable("WORLD"));
  bool bcube = strcmp(variable("ALGO"), "bcube") == 0;
  algorithm = bcube ? AllreduceOptions::Algorithm::BCUBE : AllreduceOptions::Algorithm::RING;
  try {
    gloo::rendezvous::FileStore store(variable("STORE"));
    gloo::transport::tcp::attr address("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(address);
    context = std::make_shared<gloo::rendezvous::Context>(rank, world);
    context->connectFullMesh(store, device);
  } catch (const std::exception &e) {
    fail(e.what());
  }
  // Destructors of a context whose peers are gone may wait for them.
  _exit(work(rank, world, argc, argv));
}
