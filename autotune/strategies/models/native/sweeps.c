/* The sweeps of autotune/strategies/models/sweeps.py, which has the same arithmetic in the same
   order: both give the same bits (compiled without fused operations). */
#include <math.h>
#include <stdint.h>

#define NOTHING 1e-8

void sweep(const int64_t *shape, const int64_t *runs, const int64_t *starts, const int64_t *owners,
           const double *logs, const double *columns, const double *prior, const double *normals,
           const double *logistics, const double *gammas, const double *totals, double *samples,
           double *work)
{
    const int64_t count = shape[0], width = shape[1], many = shape[2];
    const int64_t burn = shape[3], thin = shape[4], sweeps = burn + thin * shape[5];
    const double slab = prior[0], sibling_odds = prior[1], cost_variance = prior[3];
    double cost = prior[2], spread = prior[4], noise = prior[6];
    double *rest = work, *trust = rest + count, *acting = trust + count;
    double *effects = acting + many, *active = effects + width;
    int64_t due = burn;

    for (int64_t i = 0; i < count; i++) {
        rest[i] = logs[i];
        trust[i] = 1.0;
    }
    for (int64_t j = 0; j < many + 2 * width; j++)
        acting[j] = 0.0;
    for (int64_t turn = 0; turn < sweeps; turn++) {
        const int keep = turn == due;
        const double *normal = normals + turn * (width + 1);
        const double per_noise = 1.0 / noise;
        double weight = 1.0 / cost_variance;
        double moment = prior[2] * weight;
        double squares = 0.0;
        for (int64_t c = 0; c < width; c++) {
            const int64_t begin = starts[c], end = starts[c + 1];
            const double *column = columns + 3 * c, old = effects[c];
            double *siblings = acting + owners[c];
            double a = 0.0, b = 0.0;
            if (begin == end && !keep)
                continue;
            for (int64_t k = begin; k < end; k++) {
                const int64_t i = runs[k];
                a += trust[i];
                b += trust[i] * (rest[i] + old);
            }
            a *= per_noise;
            b *= per_noise;
            const double idle = column[1] > 0.0 ? spread : NOTHING;
            const double mean = cost * column[2];
            const double wide = 1.0 + slab * a, narrow = 1.0 + idle * a;
            const double t = b * idle + mean;
            double odds = *siblings - active[c] > 0.5 ? sibling_odds : column[0];
            odds += 0.5 * log(narrow / wide);
            odds += 0.5 * (b * b * slab / wide);
            odds += 0.5 * ((mean * mean * narrow - t * t) / (idle * narrow));
            const double acts = odds > logistics[turn * width + c] ? 1.0 : 0.0;
            if (begin != end) {
                *siblings += acts - active[c];
                active[c] = acts;
            }
            const double variance = acts > 0.5 ? slab : idle;
            const double centre = acts > 0.5 ? 0.0 : mean;
            const double precision = 1.0 / variance + a;
            double fresh = (centre / variance + b) / precision;
            fresh += normal[c] * sqrt(1.0 / precision);
            for (int64_t k = begin; k < end; k++)
                rest[runs[k]] -= fresh - old;
            effects[c] = fresh;
            if (begin != end && column[1] > 0.0 && column[2] > 0.0) {
                const double distance = fresh - mean;
                squares += acts > 0.5 ? prior[4] : distance * distance;
                if (acts < 0.5) {
                    weight += 1.0 / spread;
                    moment += fresh / spread;
                }
            }
        }
        cost = moment / weight + normal[width] * sqrt(1.0 / weight);
        spread = (prior[5] * prior[4] + squares) / (2.0 * totals[2 * turn]);
        squares = 0.0;
        for (int64_t i = 0; i < count; i++)
            squares += trust[i] * rest[i] * rest[i];
        noise = (prior[7] * prior[6] + squares) / (2.0 * totals[2 * turn + 1]);
        for (int64_t i = 0; i < count; i++) {
            trust[i] = 1.0;
            if (rest[i] > 0.0) {
                const double slow = 2.0 * gammas[turn * count + i];
                const double share = slow / (prior[8] + rest[i] * rest[i] / noise);
                trust[i] = share < 1.0 ? share : 1.0;
            }
        }
        if (keep) {
            for (int64_t c = 0; c < width; c++)
                *samples++ = effects[c];
            due += thin;
        }
    }
}
