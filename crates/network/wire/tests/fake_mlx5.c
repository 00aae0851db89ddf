// A libmlx5 whose devices are those of fake_verbs.c: it gives queue pairs other source ports (FAKE_MLX5=can), or its hardware cannot
// (FAKE_MLX5=cannot).
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

int fake_relabel(struct ibv_qp *qp, uint32_t label);

bool mlx5dv_is_supported(struct ibv_device *device) { return device != NULL; }

int mlx5dv_modify_qp_udp_sport(struct ibv_qp *qp, uint16_t port) {
    if (strcmp(getenv("FAKE_MLX5"), "can")) return EOPNOTSUPP;
    // The port of a label below 2^14 is the label and the two upper bits.
    return port < 0xc000 ? EINVAL : fake_relabel(qp, port & 0x3fff);
}
