/**
 * How two vectors are compared. A larger score is nearer, for all metrics:
 * - `inner-product`: the dot product of query and row.
 * - `cosine`: dot / ‖query‖ / ‖row‖, and 0 if a norm is 0. Rows are stored unchanged, not normalised.
 * - `l2`: the negated squared Euclidean distance; 0 for an identical row, never −0.
 */
export const METRICS = ['inner-product', 'cosine', 'l2'] as const;
export type Metric = (typeof METRICS)[number];
