import { TimeSlice } from '../../base/time-slice.ts';

export interface Projection {
  /** Two coordinates per vector: its first and second principal component. */
  readonly points: readonly (readonly [number, number])[];
  /** The shares of the variance that the two components have. */
  readonly explained: readonly [number, number];
}

const ITERATIONS = 40;

/**
 * The first two principal components of `count` vectors (row-major), by power iteration with deflation. For a few hundred vectors
 * to look at, the components are exact enough after 40 steps.
 */
export async function principalComponents(
  vectors: Float32Array,
  dimension: number,
  signal: AbortSignal,
): Promise<Projection> {
  const count = vectors.length / dimension;
  const slice = new TimeSlice(signal);
  const centred = centre(vectors, dimension);
  let variance = 0;
  for (const value of centred) variance += value * value;
  const found: { axis: Float64Array; coordinates: Float64Array; share: number }[] = [];
  for (let which = 0; which < 2; which++) {
    let axis: Float64Array = startAxis(dimension, which);
    let coordinates: Float64Array = new Float64Array(count);
    for (let step = 0; step < ITERATIONS; step++) {
      for (const other of found) removeAxis(axis, other.axis);
      normalize(axis);
      coordinates = project(centred, axis);
      axis = combine(centred, coordinates, dimension);
      if (slice.isOver) await slice.yield();
    }
    for (const other of found) removeAxis(axis, other.axis);
    normalize(axis);
    coordinates = project(centred, axis);
    const own = coordinates.reduce((sum, value) => sum + value * value, 0);
    found.push({ axis, coordinates, share: variance > 0 ? own / variance : 0 });
  }
  const [first, second] = found as [(typeof found)[0], (typeof found)[0]];
  return {
    points: Array.from({ length: count }, (_, i) => [first.coordinates[i]!, second.coordinates[i]!] as const),
    explained: [first.share, second.share],
  };
}

function centre(vectors: Float32Array, dimension: number): Float64Array {
  const mean = new Float64Array(dimension);
  const count = vectors.length / dimension;
  for (let i = 0; i < vectors.length; i++) mean[i % dimension]! += vectors[i]! / count;
  return Float64Array.from(vectors, (value, i) => value - mean[i % dimension]!);
}

/** Any vector that is not orthogonal to the component; the same one each time, so that the map is the same. */
function startAxis(dimension: number, which: number): Float64Array {
  return Float64Array.from({ length: dimension }, (_, i) => Math.sin((i + 1) * (which + 1.5)));
}

function removeAxis(axis: Float64Array, other: Float64Array): void {
  let dot = 0;
  for (let i = 0; i < axis.length; i++) dot += axis[i]! * other[i]!;
  for (let i = 0; i < axis.length; i++) axis[i]! -= dot * other[i]!;
}

function normalize(axis: Float64Array): void {
  const length = Math.hypot(...axis);
  if (length > 0) for (let i = 0; i < axis.length; i++) axis[i]! /= length;
}

function project(centred: Float64Array, axis: Float64Array): Float64Array {
  const coordinates = new Float64Array(centred.length / axis.length);
  for (let i = 0; i < centred.length; i++) {
    coordinates[Math.floor(i / axis.length)]! += centred[i]! * axis[i % axis.length]!;
  }
  return coordinates;
}

function combine(centred: Float64Array, coordinates: Float64Array, dimension: number): Float64Array {
  const axis = new Float64Array(dimension);
  for (let i = 0; i < centred.length; i++)
    axis[i % dimension]! += centred[i]! * coordinates[Math.floor(i / dimension)]!;
  return axis;
}
