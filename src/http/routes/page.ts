import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { packageRoot } from '../../package-root.ts';

/** Files of the search page by route. Some browsers request /favicon.ico even if the page links another icon. */
const PAGE_FILES = [
  { route: '/', file: 'index.html', type: 'text/html; charset=utf-8' },
  { route: '/page.css', file: 'page.css', type: 'text/css; charset=utf-8' },
  { route: '/page.js', file: 'page.js', type: 'text/javascript; charset=utf-8' },
  { route: '/favicon.svg', file: 'favicon.svg', type: 'image/svg+xml' },
  { route: '/favicon.ico', file: 'favicon.svg', type: 'image/svg+xml' },
] as const;

/** Allows only the page's own files, and no framing by other sites. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** Serves src/web, which is read into memory at the start. `root`: also at `/`, unless another interface answers there. */
export function registerPage(app: FastifyInstance, { root }: { readonly root: boolean }): void {
  for (const page of PAGE_FILES) {
    if (page.route === '/' && !root) continue;
    app.get(page.route, { config: { access: 'open' } }, pageHandler(page));
  }
}

/** Answers with the search page, for a route at which browsers ask for it beside other clients. */
export function searchPage(): PageHandler {
  return pageHandler(PAGE_FILES[0]);
}

type PageHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

function pageHandler({ file, type }: (typeof PAGE_FILES)[number]): PageHandler {
  const content = readFileSync(join(packageRoot, 'src', 'web', file));
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  return async (request, reply) => {
    reply
      .header('etag', etag)
      // Browsers revalidate each time, so that they never show an old page with an upgraded server.
      .header('cache-control', 'no-cache')
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      .header('referrer-policy', 'no-referrer');
    if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.header('content-type', type).send(content);
  };
}

function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((candidate) => {
    const tag = candidate.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}
