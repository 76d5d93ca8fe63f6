import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * A signal that aborts when the client goes away before its answer is sent.
 *
 * The request's own `close` will not do: Node emits it as soon as the body has been read. The response's `close` comes
 * after every answer, sent or not, hence the look at `writableFinished`; and a response that waits behind another one on
 * the same connection has no socket yet and hears nothing, hence the socket's `close` as well.
 */
export function clientSignal(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const { socket } = request;
  const gone = (): void => {
    socket.off('close', gone);
    response.off('close', gone);
    if (!response.writableFinished) controller.abort();
  };
  socket.once('close', gone);
  response.once('close', gone);
  if (socket.destroyed) gone();
  return controller.signal;
}
