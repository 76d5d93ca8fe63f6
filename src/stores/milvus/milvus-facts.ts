import type { SdkField } from './milvus-sdk.ts';

/** Milvus's limit of a text, in bytes of UTF-8. */
export const MAX_TEXT_BYTES = 65_535;

export interface FieldSpec {
  readonly name: string;
  readonly type: 'int64' | 'text' | 'vector';
  readonly isKey?: boolean;
  /** Of vectors. */
  readonly dimension?: number;
}

/** A field of a collection that is there. */
export interface FoundField {
  readonly name: string;
  /** Milvus's name of the type: Int64, VarChar, FloatVector or another. */
  readonly type: string;
  readonly isKey: boolean;
  /** Of vectors. */
  readonly dimension?: number;
}

export interface CollectionFacts {
  /** The collection's own name, if it was asked for by an alias. */
  readonly name: string;
  readonly fields: readonly FoundField[];
  readonly aliases: readonly string[];
}

export interface IndexFacts {
  readonly type: string;
  readonly metric: string | undefined;
  readonly rows: number;
  readonly pendingRows: number;
  readonly failure: string;
}

export interface SegmentFacts {
  readonly rows: number;
  readonly isSealed: boolean;
  /** The query nodes that hold it. */
  readonly nodes: readonly number[];
}

/** A process that holds rows in memory and searches them. */
export interface QueryNodeFacts {
  readonly id: number;
  /** Of the machine that it runs on, in bytes. */
  readonly memoryBytes: number;
  readonly usedBytes: number;
}

/** A field as the package describes it. */
export function foundField({
  name,
  data_type: type,
  is_primary_key: isKey,
  type_params: params,
}: SdkField): FoundField {
  const dimension = params?.find(({ key }) => key === 'dim')?.value;
  return { name, type, isKey: isKey === true, dimension: dimension === undefined ? undefined : Number(dimension) };
}
