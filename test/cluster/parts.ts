import type { ClusterPart } from './cluster-part.ts';
import { milvusPart } from './milvus-part.ts';
import { openSearchPart } from './opensearch-part.ts';

export const CLUSTER_PARTS: readonly ClusterPart[] = [milvusPart, openSearchPart];
