import type { RowBitmap } from '../engine/row-bitmap.ts';
import type { RetrieveCall } from './calls/retrieve-call.ts';

/** A call, and the rows of its scope. */
export interface ScopedCall extends RetrieveCall {
  /** Undefined for all rows. */
  readonly rows: RowBitmap | undefined;
}
