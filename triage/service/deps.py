"""What endpoints ask for: the store, the catalog, the settings, and who is there.

@router.get("/thing")
def thing(store: TheStore, who: Annotated[Principal, Depends(require("viewer"))]) -> Response: ...
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from triage.catalog.model import Catalog
from triage.service.failure import ServiceError
from triage.service.principal import Principal, Role
from triage.service.state import Service
from triage.settings import Settings
from triage.store import Store


def service(request: Request) -> Service:
    """What lives as long as the application."""
    found: Service = request.app.state.service
    return found


def store(request: Request) -> Store:
    """The open store; each thread has a connection of its own."""
    return service(request).store


def catalog(request: Request) -> Catalog:
    """The catalog as it is now."""
    return service(request).catalog()


def settings(request: Request) -> Settings:
    """The settings of this process."""
    return service(request).settings


def principal(request: Request) -> Principal | None:
    """Who is signed in, or None."""
    found: Principal | None = request.scope.get("triage.principal")
    return found


class Require:
    """A dependency that gives the Principal, and refuses with 401 or 403 who has not this role or a higher one."""

    def __init__(self, role: Role) -> None:
        self.role = role

    def __call__(self, request: Request) -> Principal:
        who = principal(request)
        if who is None:
            raise ServiceError(401, "you are not signed in", headers={"WWW-Authenticate": 'Bearer realm="triage"'})
        if not who.may(self.role):
            raise ServiceError(403, f"this needs the role {self.role}; {who.name} has {who.role}")
        return who


def require(role: Role) -> Require:
    """For `Depends(require("curator"))`; Viewer, Submitter, Curator and Admin below say it shorter."""
    return Require(role)


TheService = Annotated[Service, Depends(service)]
TheStore = Annotated[Store, Depends(store)]
TheCatalog = Annotated[Catalog, Depends(catalog)]
TheSettings = Annotated[Settings, Depends(settings)]
Viewer = Annotated[Principal, Depends(require("viewer"))]
Submitter = Annotated[Principal, Depends(require("submitter"))]
Curator = Annotated[Principal, Depends(require("curator"))]
Admin = Annotated[Principal, Depends(require("admin"))]
