"""Window: shows pictures of a game one after the other, for ``render_mode="human"``; by pygame."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from pyramid_env.render.extra import needed

if TYPE_CHECKING:
    from pyramid_env.render.canvas import Picture

TITLE: Final = "Pyramid"


class Window:
    """A window of the size of the first picture shown.

    Once the person in front of it has closed it, it stays closed and :meth:`show` does nothing, so that a program goes
    on without it.

    Raises:
        MissingPackage: pygame is not installed.
    """

    def __init__(self, fps: float) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # pygame prints a line when imported
        self._pygame: Any = needed("pygame", 'render_mode="human"')
        self._fps = fps
        self._screen: Any = None
        self._clock: Any = None
        self.is_closed = False

    def show(self, picture: Picture) -> None:
        """Show a picture, and wait until the last one was there for 1 / fps seconds."""
        if self.is_closed:
            return
        pygame = self._pygame
        if self._screen is None:
            pygame.display.init()
            pygame.display.set_caption(TITLE)
            self._screen = pygame.display.set_mode(picture.shape[1::-1])
            self._clock = pygame.time.Clock()
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()
            return
        self._screen.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Take the window away; a second time does nothing."""
        if self._screen is not None:
            self._pygame.display.quit()
        self._screen, self.is_closed = None, True
