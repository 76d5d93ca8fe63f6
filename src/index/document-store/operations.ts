/** Why Elasticsearch refuses an operation or a request, in its words. */
export interface Failure {
  readonly status: number;
  readonly type: string;
  readonly reason: string;
  readonly caused_by?: { readonly type: string; readonly reason: string };
}

/** A change of one document. Without `source` it is deleted. */
export interface Operation {
  readonly action: 'index' | 'create' | 'delete';
  readonly index: string;
  readonly id: string;
  /** The document as JSON text; undefined to delete. */
  readonly source?: string;
}

/** What an operation did. `version` counts the changes of the document, `seqNo` the changes of the index, from 0. */
export interface Written {
  readonly result: 'created' | 'updated' | 'deleted' | 'not_found';
  readonly version: number;
  readonly seqNo: number;
}

export type Outcome = Written | { readonly failure: Failure };

/** An operation of a request, and what it did. */
export interface WriteItem {
  readonly action: 'index' | 'create' | 'delete' | 'update';
  readonly index: string;
  /** Null where the request names none and the operation failed. */
  readonly id: string | null;
  readonly outcome: Outcome;
}

/** The latest version of a document, which searches may not find yet. */
export interface StoredDocument {
  readonly version: number;
  readonly seqNo: number;
  /** JSON text. */
  readonly source: string;
}

/** Elasticsearch's failure for a value that it refuses. */
export function illegalArgument(reason: string): Failure {
  return { status: 400, type: 'illegal_argument_exception', reason };
}
