import { importOptional } from '../../base/system/optional-package.ts';

const PACKAGE = '@zilliz/milvus2-sdk-node';

export interface Sdk {
  readonly MilvusClient: new (config: object) => SdkClient;
  readonly DataType: Readonly<Record<string, number>>;
}

type SdkCall = (request: object) => Promise<SdkReply>;

export interface SdkStatus {
  readonly error_code?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly retriable?: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: replies have as many forms as calls; each is read where it is made.
export type SdkReply = any;

export interface SdkField {
  readonly name: string;
  readonly data_type: string;
  readonly is_primary_key?: boolean;
  readonly type_params?: readonly { readonly key: string; readonly value: unknown }[];
}

export interface SdkNode {
  readonly type?: string;
  readonly id?: number;
  readonly hardware_infos?: { readonly memory?: number; readonly memory_usage?: number };
}

export interface SdkClient extends Readonly<Record<string, SdkCall>> {
  closeConnection: () => Promise<unknown>;
  getVersion: () => Promise<SdkReply>;
}

/** @throws TrawlError PACKAGE_MISSING. */
export async function loadSdk(): Promise<Sdk> {
  const [loaded] = (await importOptional([PACKAGE], `An index in Milvus needs the package ${PACKAGE}`)) as [
    { readonly default?: Sdk } & Sdk,
  ];
  return loaded.MilvusClient === undefined ? loaded.default! : loaded;
}
