/* Models of devices in RTL (docs/backends.md): built once from the folder that a machine file
 * names, loaded as a shared library. */
#ifndef ISAMAP_BACKENDS_MODEL_H
#define ISAMAP_BACKENDS_MODEL_H

#include "backends/device.h"
#include "machines/machine.h"

struct model {
    const struct device *device;
    void *library;
};

/* Builds it, or takes it from the cache. `set`: parameters as the user set them; those that the
 * folder's file `settings` names do not make another model. False after reporting: no model, no
 * tools. */
bool model_load(const struct machine *, const struct bindings *set, struct model *, struct diags *);
/* Opens the device with the machine's values of those parameters, and `more`; NULL after reporting. */
void *model_open(const struct model *, const struct machine *, const struct device_setting *more,
                 int nmore, struct diags *);
void model_free(struct model *);

#endif
