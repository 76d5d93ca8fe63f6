import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import { TransientFailure } from '../../src/base/net/retries.ts';
import type { CopySource, FileFacts, OpenSource } from './copy-source.ts';
import { openS3 } from './s3-client.ts';

export interface S3SourceOptions {
  readonly endpoint?: string;
  readonly region?: string;
  readonly anonymous?: boolean;
}

/** Bucket and prefix of `s3://BUCKET/PREFIX`. @throws TrawlError USAGE. */
export function parseS3Url(text: string): { readonly bucket: string; readonly prefix: string } {
  const [, bucket, prefix] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*?))?\/*$/.exec(text) ?? [];
  if (bucket !== undefined) return { bucket, prefix: prefix === undefined || prefix === '' ? '' : `${prefix}/` };
  throw new TrawlError('USAGE', `${JSON.stringify(text)} is not valid; expected s3://BUCKET/FOLDER of an index.`);
}

/** An index in S3-compatible storage. Nothing can be held there: an object that is replaced while it is copied is SOURCE_CHANGED. */
export function s3Source(url: string, { endpoint, region, anonymous = false }: S3SourceOptions = {}): OpenSource {
  const { bucket, prefix } = parseS3Url(url);
  return async () => {
    const s3 = await openS3({ endpoint, region, anonymous });
    const tags = new Map<string, string>();
    const facts = async (path: string, abortSignal: AbortSignal): Promise<FileFacts> => {
      const object = { Bucket: bucket, Key: prefix + path };
      const head = await s3.headObject(object, { abortSignal }).catch((error: unknown) => {
        throw failureOf(url, path, error);
      });
      const tag = head.ETag ?? '';
      if ((tags.get(path) ?? tag) !== tag) throw changed(url, path);
      tags.set(path, tag);
      return { bytes: head.ContentLength ?? 0, tag: tag.replaceAll('"', '') };
    };
    async function* read(path: string, offset: number, abortSignal: AbortSignal): AsyncGenerator<Uint8Array> {
      const { bytes } = await facts(path, abortSignal);
      if (offset >= bytes) return;
      const object = {
        Bucket: bucket,
        Key: prefix + path,
        IfMatch: tags.get(path),
        ...(offset === 0 ? {} : { Range: `bytes=${offset}-` }),
      };
      try {
        const { Body, ContentRange } = await s3.getObject(object, { abortSignal });
        if (offset > 0 && ContentRange?.startsWith(`bytes ${offset}-`) !== true) {
          throw new TrawlError('SOURCE_REFUSED', `${url}: the storage does not send ${path} from byte ${offset}.`);
        }
        yield* Body as unknown as AsyncIterable<Uint8Array>;
      } catch (error) {
        throw failureOf(url, path, error);
      }
    }
    return {
      shown: url,
      async readManifest(path, signal) {
        const chunks: Uint8Array[] = [];
        for await (const chunk of read(path, 0, signal)) chunks.push(chunk);
        return Buffer.concat(chunks);
      },
      facts,
      read,
      async close() {
        s3.destroy();
      },
    } satisfies CopySource;
  };
}

function changed(url: string, path: string): TrawlError {
  return new TrawlError('SOURCE_CHANGED', `${url}: another object has taken the place of ${path}.`);
}

/** The error of a request. The SDK's errors have a name and, if the storage answered, a status. */
function failureOf(url: string, path: string, error: unknown): unknown {
  if (error instanceof TrawlError || error instanceof TransientFailure) return error;
  const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  if (status === 412) return changed(url, path);
  if (status === 404 && path === 'manifest.json') {
    return new TrawlError(
      'INDEX_NOT_FOUND',
      `${url}: no index found (there is no object ${path}, or no such bucket).`,
      { cause: error },
    );
  }
  if (status === 404)
    return new TrawlError('INDEX_FILE_MISSING', `${url}: there is no object ${path}.`, { cause: error });
  if (status !== undefined && status !== 429 && status < 500) {
    const advice = status === 403 ? ' Check the credentials and the bucket; --s3-anonymous sends none.' : '';
    return new TrawlError('SOURCE_REFUSED', `${url}: the storage answers with status ${status} (${name}).${advice}`, {
      cause: error,
    });
  }
  if (status === undefined && /Credentials/.test(name)) {
    return new TrawlError(
      'SOURCE_REFUSED',
      `${url}: there are no credentials (${message}). --s3-anonymous sends none.`,
      { cause: error },
    );
  }
  if (status === undefined && !isNodeError(error) && /region/i.test(message)) {
    return new TrawlError('CONFIG_INVALID', `${url}: ${message}. Set AWS_REGION or --s3-region.`, { cause: error });
  }
  return new TransientFailure(`${url}: ${status === undefined ? message : `status ${status}`}`, { cause: error });
}
