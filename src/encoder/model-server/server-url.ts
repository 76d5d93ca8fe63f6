import { TrawlError } from '../../base/errors.ts';

/** Whether a `--model` or `--rerank` is the address of a server, not a name or folder. */
export function isServerUrl(text: string): boolean {
  return /^https?:/i.test(text);
}

/**
 * @param what what the URL is of, and how a key is passed instead of in the URL.
 * @throws TrawlError CONFIG_INVALID. The message does not repeat the URL, which may have a password.
 */
export function parseServerUrl(text: string, { what, keyOption }: { what: string; keyOption: string }): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return url;
  throw new TrawlError(
    'CONFIG_INVALID',
    `The URL of the ${what} is not valid; expected http://HOST/… or https://HOST/… without a user. Pass a key with ${keyOption}.`,
  );
}

/** A URL for messages, logs and manifests: without query, which may have a key. */
export function shownUrl(url: URL): string {
  return `${url.origin}${url.pathname === '/' ? '' : url.pathname}`;
}
