/**
 * How two vectors are compared. Whatever the metric, a larger score is nearer:
 * - `inner-product`: the dot product of query and row.
 * - `cosine`: dot / ‖query‖ / ‖row‖, 0 where a norm is 0. Rows are stored as they came, not normalised.
 * - `l2`: the negated squared Euclidean distance; 0 for an identical row, never −0.
 */
export const METRICS = ['inner-product', 'cosine', 'l2'] as const;
export type Metric = (typeof METRICS)[number];
