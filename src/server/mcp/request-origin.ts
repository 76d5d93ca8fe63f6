import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../access/access.ts';

/** Why a request's `origin` or `host` is refused; undefined if both are accepted. */
export function refusalOf(request: FastifyRequest, hosts: readonly string[]): string | undefined {
  const isAccepted = (name: string | undefined): boolean =>
    name !== undefined && (isLoopbackName(name) || hosts.includes(name.toLowerCase()));
  const { origin, host } = request.headers;
  // Only browsers send `origin`: the request comes from a page of another site.
  if (origin !== undefined && !isAccepted(hostName(origin))) {
    return `Pages of ${origin.slice(0, 200)} may not call this server. Allow them with --mcp-host.`;
  }
  // DNS rebinding: if a site's host name resolves to loopback, its pages can reach this server as their own origin.
  const { localAddress } = request.raw.socket;
  const local = localAddress === undefined || isLoopback(localAddress);
  if (local && !isAccepted(hostName(`http://${host ?? ''}`))) {
    return `The host name ${String(host).slice(0, 200)} is not accepted on loopback. Use localhost, or allow the name with --mcp-host.`;
  }
  return undefined;
}

function hostName(url: string): string | undefined {
  try {
    return new URL(url).hostname;
  } catch {
    return undefined;
  }
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(name);
}
