import { buffer } from 'node:stream/consumers';
import { type ErrorCode, isNodeError, TrawlError } from '../../src/base/errors.ts';
import { TransientFailure } from '../../src/base/net/retries.ts';
import { importOptional } from '../../src/base/system/optional-package.ts';
import type { CopySource, FileFacts, OpenSource } from './copy-source.ts';

/** The part of `@aws-sdk/client-s3` that copies need. It is loaded on demand, because it is larger than Trawl itself. */
type S3Module = typeof import('@aws-sdk/client-s3');
type S3 = InstanceType<S3Module['S3']>;

const PACKAGE = '@aws-sdk/client-s3@3';

export interface S3SourceOptions {
  /** URL of a storage other than Amazon's, such as MinIO or Ceph. */
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
export function s3Source(url: string, options: S3SourceOptions = {}): OpenSource {
  const { bucket, prefix } = parseS3Url(url);
  return async () => {
    const s3 = await openS3(options);
    const tags = new Map<string, string>();
    const facts = async (path: string, abortSignal: AbortSignal): Promise<FileFacts> => {
      const object = { Bucket: bucket, Key: prefix + path };
      const head = await s3.headObject(object, { abortSignal }).catch((error: unknown) => {
        throw requestFailure(url, path, error);
      });
      const tag = head.ETag ?? '';
      if ((tags.get(path) ?? tag) !== tag) throw changed(url, path);
      tags.set(path, tag);
      return { bytes: head.ContentLength ?? 0, tag: tag.replaceAll('"', '') };
    };
    async function* read(path: string, offset: number, abortSignal: AbortSignal): AsyncGenerator<Uint8Array> {
      const { bytes } = await facts(path, abortSignal);
      if (offset >= bytes) return;
      const Range = offset === 0 ? undefined : `bytes=${offset}-`;
      const object = { Bucket: bucket, Key: prefix + path, IfMatch: tags.get(path), Range };
      try {
        const { Body, ContentRange } = await s3.getObject(object, { abortSignal });
        if (offset > 0 && ContentRange?.startsWith(`bytes ${offset}-`) !== true) {
          throw new TrawlError('SOURCE_REFUSED', `${url}: the storage does not send ${path} from byte ${offset}.`);
        }
        yield* Body as unknown as AsyncIterable<Uint8Array>;
      } catch (error) {
        throw requestFailure(url, path, error);
      }
    }
    return {
      shown: url,
      readManifest: (path, signal) => buffer(read(path, 0, signal)),
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
function requestFailure(url: string, path: string, error: unknown): unknown {
  if (error instanceof TrawlError || error instanceof TransientFailure) return error;
  const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  const failed = (code: ErrorCode, text: string): TrawlError =>
    new TrawlError(code, `${url}: ${text}`, { cause: error });
  if (status === 412) return changed(url, path);
  if (status === 404 && path === 'manifest.json') {
    return failed('INDEX_NOT_FOUND', `no index found (there is no object ${path}, or no such bucket).`);
  }
  if (status === 404) return failed('INDEX_FILE_MISSING', `there is no object ${path}.`);
  if (status !== undefined && status !== 429 && status < 500) {
    const advice = status === 403 ? ' Check the credentials and the bucket; --s3-anonymous sends none.' : '';
    return failed('SOURCE_REFUSED', `the storage answers with status ${status} (${name}).${advice}`);
  }
  if (status === undefined && /Credentials/.test(name)) {
    return failed('SOURCE_REFUSED', `there are no credentials (${message}). --s3-anonymous sends none.`);
  }
  if (status === undefined && !isNodeError(error) && /region/i.test(message)) {
    return failed('CONFIG_INVALID', `${message}. Set AWS_REGION or --s3-region.`);
  }
  return new TransientFailure(`${url}: ${status === undefined ? message : `status ${status}`}`, { cause: error });
}

/**
 * A client with the credentials and the region of the environment, of the AWS configuration files, or of the machine's role.
 *
 * @throws TrawlError PACKAGE_MISSING.
 */
async function openS3({ endpoint, region, anonymous }: S3SourceOptions): Promise<S3> {
  const [{ S3 }] = (await importOptional(
    [PACKAGE],
    `An index in an object storage is read with the package ${PACKAGE}`,
  )) as [S3Module];
  return new S3({
    // One attempt: the copy itself repeats, and says so.
    maxAttempts: 1,
    // The manifest has checksums of the whole files. The storage has them only of uploaded parts.
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    region,
    // An own storage often has no region, but a signature needs one.
    ...(region === undefined && endpoint !== undefined ? { region: 'us-east-1' } : {}),
    ...(anonymous === true ? { signer: { sign: async (request) => request } } : {}),
  });
}
