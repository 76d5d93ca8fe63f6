import { createRequire } from 'node:module';
import type { TestContext } from 'node:test';
import type { FieldSpec } from '../../../src/stores/milvus/milvus-client.ts';

/** A call of the client as the server gets it. */
export interface Asked {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: requests have as many forms as calls.
  readonly request: any;
}

export type Replies = Readonly<Record<string, (asked: Asked) => object>>;

/** The reply to DescribeCollection. */
export function described(name: string, fields: readonly FieldSpec[]) {
  const TYPES = { int64: 'Int64', text: 'VarChar', vector: 'FloatVector' } as const;
  return {
    status: {},
    collection_name: name,
    schema: {
      name,
      fields: fields.map((field, i) => ({
        name: field.name,
        data_type: TYPES[field.type],
        is_primary_key: field.isKey === true,
        fieldID: 100 + i,
        type_params: field.dimension === undefined ? [] : [{ key: 'dim', value: String(field.dimension) }],
      })),
    },
  };
}

export const NO_COLLECTION = {
  status: { error_code: 'CollectionNotExists', code: 100, reason: "can't find collection" },
};

interface GrpcServer {
  addService(service: object, handlers: object): void;
  bindAsync(address: string, credentials: object, done: (error: Error | null, port: number) => void): void;
  forceShutdown(): void;
}

// The packages of the client, which are not Trawl's own.
const requireHere = createRequire(import.meta.url);
const sdkFile = requireHere.resolve('@zilliz/milvus2-sdk-node');
const requireSdk = createRequire(sdkFile);
const { Server, ServerCredentials } = requireSdk('@grpc/grpc-js');
const { getGRPCService, LOADER_OPTIONS } = requireSdk(sdkFile);

/** A server of Milvus's protocol whose replies the test decides; it knows no other calls. */
export class FakeMilvus {
  readonly asked: Asked[] = [];
  readonly #replies: Replies;
  #server: GrpcServer | undefined;
  port = 0;

  private constructor(replies: Replies) {
    this.#replies = {
      GetVersion: () => ({ status: {}, version: 'v0' }),
      Connect: () => ({ status: {}, server_info: { build_tags: 'v0' }, identifier: 1 }),
      ...replies,
    };
  }

  static async start(t: TestContext, replies: Replies): Promise<FakeMilvus> {
    const fake = new FakeMilvus(replies);
    await fake.listen();
    t.after(() => fake.end());
    return fake;
  }

  /** Listens, after `end` at the same port. */
  async listen(host = '127.0.0.1'): Promise<void> {
    const server: GrpcServer = new Server();
    const service = getGRPCService({ serviceName: 'milvus.proto.milvus.MilvusService' }, LOADER_OPTIONS).service;
    const handlers = Object.entries(this.#replies).map(([method, reply]) => [
      method,
      ({ request }: { request: unknown }, done: (error: unknown, reply?: object) => void) => {
        const asked = { method, request };
        this.asked.push(asked);
        try {
          done(null, reply(asked));
        } catch (error) {
          done(error);
        }
      },
    ]);
    server.addService(service, Object.fromEntries(handlers));
    this.port = await new Promise((resolve, reject) =>
      server.bindAsync(`${host}:${this.port}`, ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      ),
    );
    this.#server = server;
  }

  end(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  count(method: string): number {
    return this.asked.filter((each) => each.method === method).length;
  }
}
