import type { Environment } from '../environment.ts';
import type { FlatRecord } from '../flat/flat-case.ts';

/** What `npm run reproduce -- real-vectors` writes: searches of vectors of real passages. */
export interface RealVectorsResult {
  readonly environment: Environment;
  readonly rows: readonly { readonly name: string; readonly record: FlatRecord }[];
}
